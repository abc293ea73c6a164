// Puts the page on the screen.
import { mount } from 'svelte';
import './app.css';
import App from './App.svelte';
import { showLanguage } from './lib/language';
import { recallTheme } from './lib/theme';

const target = document.getElementById('app');
if (target === null) throw new Error('index.html has no element with the id "app"');

recallTheme();
showLanguage();
export default mount(App, { target });
