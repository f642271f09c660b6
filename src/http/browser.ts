import type { BrowserLogin, Place } from "../api/account/login.ts";
import { ServiceError } from "../domain/call/error.ts";
import { cookieOf, setCookie } from "./cookie.ts";

/** The half of a browser's secret that its script holds (contract 9). */
export const SESSION_HEADER = "x-svc-session";

const PATH = "/api/auth";

/** Cookies of a browser that signs in: one half of its login, and a sign-in that is on its way. */
export class BrowserCookies {
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  /** The cookie's half of a login, or null. */
  login(request: Request): string | null {
    return cookieOf(request, `svc_login_${this.#place.cookieSuffix}`);
  }

  /** The sign-in that this browser began, or null. */
  flow(request: Request): string | null {
    return cookieOf(request, `svc_flow_${this.#place.cookieSuffix}`);
  }

  /** Sets the cookie's half of a login; "" removes it. */
  setLogin(value: string, maxAge: number): string {
    return this.#set({ name: "login", value, maxAge, sameSite: "Strict" });
  }

  /** Keeps a sign-in that is on its way. The provider sends the browser back from another site: Strict would lose it. */
  setFlow(value: string, maxAge: number): string {
    return this.#set({ name: "flow", value, maxAge, sameSite: "Lax" });
  }

  #set(cookie: { name: string; value: string; maxAge: number; sameSite: "Strict" | "Lax" }): string {
    const secure = this.#place.publicUrl.startsWith("https:");
    return setCookie({
      ...cookie,
      name: `svc_${cookie.name}_${this.#place.cookieSuffix}`,
      path: PATH,
      secure,
    });
  }
}

/**
 * Throws `forbidden` unless the page that sends this is our own: the Origin's host and port are the Host's, or those of
 * `server.public_url`. Cookies ignore ports, and so does what a browser calls the same site (contract 9).
 */
export function checkOrigin(request: Request, publicUrl: string): void {
  const origin = URL.parse(request.headers.get("origin") ?? "");
  const host = request.headers.get("host") ?? new URL(request.url).host;
  const own = origin !== null && /^https?:$/.test(origin.protocol) &&
    (origin.host === host || origin.origin === URL.parse(publicUrl)?.origin);
  if (own) return;
  throw new ServiceError(
    "forbidden",
    "Cannot log in or out with a browser from another origin: open the page of this service itself; behind a proxy, set server.public_url",
  );
}

/** The answer to a login in a browser: its script gets one half, the cookie the other. */
export function browserAnswer(login: BrowserLogin, cookies: BrowserCookies): Response {
  const { cookie, lasts_s, ...body } = login;
  return new Response(JSON.stringify(body), {
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      "set-cookie": cookies.setLogin(cookie, lasts_s),
    },
  });
}
