import { svelte } from '@sveltejs/vite-plugin-svelte';
import tailwindcss from '@tailwindcss/vite';
import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vite';

/** Formulas come with each font in three formats; every web view the page runs in reads the smallest. */
function onlyWoff2(): Plugin {
  return {
    name: 'only-woff2',
    enforce: 'pre',
    transform: (code, id) =>
      /katex[^/]*\.css/.test(id)
        ? code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[^"]*"\)/g, '')
        : undefined,
  };
}

export default defineConfig({
  plugins: [onlyWoff2(), svelte(), tailwindcss(), svelteTesting()],
  build: {
    // What the oldest system web view in use understands (WebKitGTK of Debian 12, WebView2, macOS 13).
    target: ['safari16.4', 'chrome120'],
    // The page's policy allows no inline data as scripts or styles; files it is.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The largest pieces are grammars of programming languages, each read when its first block of code appears.
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'formulas', test: /node_modules\/katex\// },
            {
              name: 'markdown',
              test: /node_modules\/(markdown-it|@mdit|entities|linkify-it|mdurl|uc\.micro|remend)/,
            },
            {
              name: 'controls',
              test: /node_modules\/(svelte\/|bits-ui|@floating-ui|svelte-toolbelt|runed|tabbable|@internationalized|esm-env|clsx|virtua)/,
            },
          ],
        },
      },
    },
  },
  worker: { format: 'es' },
  server: { port: 1420, strictPort: true },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.ts'],
    setupFiles: ['src/test/setup.ts'],
  },
});
