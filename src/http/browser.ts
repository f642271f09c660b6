import type { BrowserLogin, CookieScope } from "../api/account/login.ts";
import { ServiceError } from "../domain/call/error.ts";

/** Header for the half of a login's secret that the page's script stores (contract 9). */
export const SESSION_HEADER = "x-svc-session";

const PATH = "/api/auth";

/** Reads and sets the cookies of a browser: one half of its login's secret, and the state of a sign-in in progress. */
export class BrowserCookies {
  readonly #scope: CookieScope;

  constructor(scope: CookieScope) {
    this.#scope = scope;
  }

  /** Reads the half of a login's secret that the cookie has, or null. */
  login(request: Request): string | null {
    return readCookie(request, `svc_login_${this.#scope.cookieSuffix}`);
  }

  /** Reads the sign-in in progress of this browser, or null. */
  flow(request: Request): string | null {
    return readCookie(request, `svc_flow_${this.#scope.cookieSuffix}`);
  }

  /** Sets the half of a login's secret that the cookie has. An empty half removes the cookie. */
  setLogin(value: string, maxAge: number): string {
    return this.#set({ name: "login", value, maxAge, sameSite: "Strict" });
  }

  /** Sets the cookie of a sign-in in progress. The provider redirects from another site, and the browser would not send a Strict cookie. */
  setFlow(value: string, maxAge: number): string {
    return this.#set({ name: "flow", value, maxAge, sameSite: "Lax" });
  }

  #set(cookie: { name: string; value: string; maxAge: number; sameSite: "Strict" | "Lax" }): string {
    const secure = this.#scope.publicUrl.startsWith("https:");
    return formatCookie({
      ...cookie,
      name: `svc_${cookie.name}_${this.#scope.cookieSuffix}`,
      path: PATH,
      secure,
    });
  }
}

/**
 * Throws `forbidden` unless the request comes from a page of this service: Origin has the host and port of Host or of `server.public_url`.
 * Cookies and the same-site rule of browsers ignore ports (contract 9).
 */
export function checkOrigin(request: Request, publicUrl: string): void {
  const origin = URL.parse(request.headers.get("origin") ?? "");
  const host = request.headers.get("host") ?? new URL(request.url).host;
  const isOwn = origin !== null && /^https?:$/.test(origin.protocol) &&
    (origin.host === host || origin.origin === URL.parse(publicUrl)?.origin);
  if (isOwn) return;
  throw new ServiceError(
    "forbidden",
    "Cannot log in or out with a browser from another origin: it is not this service. Open a page of this service, and behind a proxy set server.public_url.",
  );
}

/** Builds the response to a browser's login. The body has one half of the secret, the cookie has the other half. */
export function buildLoginResponse(login: BrowserLogin, cookies: BrowserCookies): Response {
  const { cookie, lasts_s, ...body } = login;
  return new Response(JSON.stringify(body), {
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      "set-cookie": cookies.setLogin(cookie, lasts_s),
    },
  });
}

interface Cookie {
  name: string;
  value: string;
  path: string;
  /** Seconds; 0 removes the cookie. */
  maxAge: number;
  sameSite: "Strict" | "Lax";
  /** Restricts the cookie to TLS. */
  secure: boolean;
}

/** Formats an HttpOnly Set-Cookie header. `value` must not contain separators. */
function formatCookie({ name, value, path, maxAge, sameSite, secure }: Cookie): string {
  return `${name}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=${sameSite}${
    secure ? "; Secure" : ""
  }`;
}

/** Reads a cookie of a request, or null. */
function readCookie(request: Request, name: string): string | null {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const [key = "", ...value] = pair.split("=");
    if (key.trim() === name) return value.join("=").trim();
  }
  return null;
}
