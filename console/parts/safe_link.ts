// A browser removes or converts these characters, so the link would lead elsewhere than its text says.
// deno-lint-ignore no-control-regex
const CONVERTED = /[\u0000-\u001f\u007f\\]/;
const WRITTEN = /^(https?:\/\/(?!\/)|mailto:|\/(?!\/)|#)/i;
// Starts at the first `#`. A search that starts at each `#` would take quadratic time.
const LOGIN_CODE = /^[^#]*#(.*\W)?code=/is;
const OWN_FORBIDDEN = /\\|^\/\/|\/api\/+auth(\/|$)/i;
const DECODINGS_MAX = 10;

/**
 * Returns whether a URL in a message may become a link on a page of `origin`. Allowed are addresses of other sites, mail addresses and
 * paths of this service, except those that log in: with a code, or to a route of the login. `javascript:` and `data:` URLs stay text.
 */
export function isSafeLink(href: string, origin: string): boolean {
  if (CONVERTED.test(href) || !WRITTEN.test(href)) return false;
  const url = parseUrl(href, origin);
  if (url === null || url.username !== "" || url.password !== "") return false;
  const address = decodeFully(url.href);
  const path = decodeFully(url.pathname);
  if (address === null || path === null || LOGIN_CODE.test(address)) return false;
  const isOwn = url.origin === origin;
  if (/^[/#]/.test(href) && !isOwn) return false;
  return !isOwn || !OWN_FORBIDDEN.test(path);
}

function parseUrl(href: string, origin: string): URL | null {
  try {
    return new URL(href, origin);
  } catch {
    return null;
  }
}

/**
 * Decodes escapes such as `%23` until none is left, because a server or a redirect may decode more than once. Returns null if
 * escapes are left after DECODINGS_MAX rounds, because a long text could need thousands of rounds.
 */
function decodeFully(text: string): string | null {
  let before = text;
  for (let rounds = 0; rounds <= DECODINGS_MAX; rounds++) {
    const decoded = before.replace(
      /%([0-7][0-9a-f])/gi,
      (_, hex: string) => String.fromCharCode(parseInt(hex, 16)),
    );
    if (decoded === before) return decoded;
    before = decoded;
  }
  return null;
}
