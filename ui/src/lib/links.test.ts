import { expect, it } from 'vitest';
import { linkParts } from './links';

it('shows the host apart from the rest', () => {
  expect(linkParts('https://example.org:8443/a?b=c#d')).toEqual({
    before: 'https://',
    host: 'example.org:8443',
    after: '/a?b=c#d',
    isPunycode: false,
  });
});

it('shows letters that imitate others as what is asked for', () => {
  const parts = linkParts('https://аpple.com/');
  expect(parts?.host).toBe('xn--pple-43d.com');
  expect(parts?.isPunycode).toBe(true);
});

it('is not fooled by a user name that looks like a host', () => {
  const parts = linkParts('https://bank.example@evil.example/bank.example');
  expect(parts).toMatchObject({
    before: 'https://bank.example@',
    host: 'evil.example',
    after: '/bank.example',
  });
  expect(linkParts('https://evil.example@evil.example/')?.before).toBe('https://evil.example@');
  expect(linkParts('https://a:b@a/')).toMatchObject({ before: 'https://a:b@', host: 'a', after: '/' });
});

it('puts the parts together to the whole address', () => {
  for (const url of ['http://u@h.example/p', 'mailto:someone@example.org', 'https://[::1]:80/x']) {
    const parts = linkParts(url);
    expect(`${parts?.before}${parts?.host}${parts?.after}`).toBe(new URL(url).href);
  }
});

it.each(['javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x', 'not a link', ''])(
  'does not open %j',
  (url) => {
    expect(linkParts(url)).toBeNull();
  },
);
