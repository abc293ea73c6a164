// What a person sees of a link before it is opened: the parts of the address as it will be asked for, so that a host in
// look-alike letters shows as punycode.

/** An address in three parts, of which the host decides where it leads. */
export type LinkParts = { before: string; host: string; after: string; isPunycode: boolean };

const opened = new Set(['http:', 'https:', 'mailto:']);

/** The parts of an address; null for what is not opened at all (scripts, files, anything unreadable). */
export function linkParts(text: string): LinkParts | null {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return null;
  }
  if (!opened.has(url.protocol)) return null;
  if (url.host === '') return { before: '', host: url.href, after: '', isPunycode: false };
  const at = url.href.indexOf(url.host, url.protocol.length + 2 + userLength(url));
  return {
    before: url.href.slice(0, at),
    host: url.host,
    after: url.href.slice(at + url.host.length),
    isPunycode: url.hostname.split('.').some((label) => label.startsWith('xn--')),
  };
}

/** A user name may look like the host ("https://bank.example@evil.example"): the host is looked for after it. */
function userLength(url: URL): number {
  const password = url.password === '' ? 0 : url.password.length + 1;
  const user = url.username.length + password;
  return user === 0 ? 0 : user + 1;
}
