import { signal } from "@preact/signals";

/** Where this browser stands: a session that ended in mid-work is `expired`, and its page waits behind the login. */
type SessionState = "starting" | "out" | "in" | "expired";

/** The state of the session. */
export const sessionState = signal<SessionState>("starting");

/** Who is signed in. */
export const username = signal("");

/** False while the service does not answer at the start. */
export const reachable = signal(true);

const scopes = signal<readonly string[]>([]);

// The only place that knows how a browser is signed in. The access token lives in memory alone. What renews it is in two
// halves: this one, and a cookie that no script reads; neither is worth anything alone (contract 9).
const KEPT = "svc.session";
// Whose the texts are that are typed in this tab.
const OWNER = "svc.owner";
const START_RETRY_MS = 2_000;

let access = "";
let leaving: Promise<unknown> = Promise.resolve();
let renewing: Promise<boolean> | null = null;
let entered = Promise.withResolvers<void>();

/** Why a login was refused, in words for the person who tried. */
export class LoginRefused extends Error {}

/** Goes on with the session that this browser had, if it is still good; waits for a service that does not answer. */
export async function startSession(): Promise<void> {
  addEventListener("storage", (event) => {
    if (event.key === KEPT) void followOtherTab(event.newValue);
  });
  if (await enterByCode()) return;
  while (localStorage.getItem(KEPT) !== null) {
    try {
      const renewed = await renew();
      reachable.value = true;
      if (renewed) return;
      break;
    } catch {
      reachable.value = false;
      await new Promise((resolve) => setTimeout(resolve, START_RETRY_MS));
    }
  }
  sessionState.value = "out";
}

// A code of `svc ctl console` or of an OpenID provider. It is good once, and must not stay in the address.
async function enterByCode(): Promise<boolean> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return false;
  history.replaceState(null, "", location.pathname + location.search);
  const response = await post("/api/auth/login", { code, browser: true }).catch(() => null);
  if (!response?.ok) return false;
  const body = await response.json();
  localStorage.setItem(KEPT, body.session);
  enter(body.access_token);
  return true;
}

/** Signs in. Throws LoginRefused with words to show. */
export async function signIn(name: string, password: string): Promise<void> {
  // The answer of a logout takes the cookie away, and must not take that of this login.
  await leaving;
  const response = await post("/api/auth/login", { username: name, password, browser: true }).catch(() =>
    null
  );
  if (response === null) throw new LoginRefused("The service does not answer. Is it running?");
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new LoginRefused(refusal(response.status, body.detail));
  localStorage.setItem(KEPT, body.session);
  enter(body.access_token);
}

/** Signs out here, and ends the session on the server. */
export async function signOut(): Promise<void> {
  const half = localStorage.getItem(KEPT);
  leave("out");
  localStorage.removeItem(KEPT);
  forgetTyped();
  if (half === null) return;
  leaving = post("/api/auth/logout", {}, half).catch(() => null);
  await leaving;
}

/**
 * Sends a request as whoever is signed in. A token that has ended is renewed once for all who wait; when that fails the
 * login is shown and the request goes on behind it, so that nothing that was typed is lost (contract 17).
 */
export async function authed(request: Request): Promise<Response> {
  for (;;) {
    await orAborted(entered.promise, request.signal);
    const used = access;
    const attempt = new Request(request.clone());
    attempt.headers.set("authorization", `Bearer ${used}`);
    const response = await fetch(attempt);
    if (response.status !== 401) return response;
    if (used === access && !await renew()) leave("expired");
  }
}

/** The token of the moment, for what cannot go through authed(): an upload that tells its progress. */
export function accessToken(): string {
  return access;
}

/** Whether whoever is signed in may do this; what they may not is not offered (contract 17.4). */
export function may(scope: string): boolean {
  const [verb = "", resource = ""] = scope.split(":");
  return scopes.value.some((held) => {
    const [heldVerb, heldResource] = held.split(":");
    return (heldVerb === "*" || heldVerb === verb) && (heldResource === "*" || heldResource === resource);
  });
}

async function renew(): Promise<boolean> {
  renewing ??= renewNow().finally(() => renewing = null);
  return await renewing;
}

async function renewNow(): Promise<boolean> {
  const half = localStorage.getItem(KEPT);
  if (half === null) return false;
  const response = await post("/api/auth/refresh", {}, half);
  if (response.status === 401) return false;
  if (!response.ok) throw new Error(`The session could not be renewed: ${response.status}`);
  enter((await response.json()).access_token);
  return true;
}

function enter(token: string): void {
  access = token;
  const claims = claimsOf(token);
  // What was typed is for nobody else, and everything in memory is of whoever was here before.
  if ((sessionStorage.getItem(OWNER) ?? claims.name) !== claims.name) forgetTyped();
  sessionStorage.setItem(OWNER, claims.name);
  if (username.value !== "" && username.value !== claims.name) return location.reload();
  username.value = claims.name;
  scopes.value = claims.scope.split(" ");
  sessionState.value = "in";
  entered.resolve();
}

function leave(state: "out" | "expired"): void {
  if (sessionState.value !== "in") return;
  access = "";
  entered = Promise.withResolvers<void>();
  sessionState.value = state;
}

// What another tab does with the session holds here, too.
async function followOtherTab(kept: string | null): Promise<void> {
  if (kept === null) {
    leave("out");
    forgetTyped();
  } else if (sessionState.value !== "in") await renew().catch(() => false);
}

function forgetTyped(): void {
  sessionStorage.clear();
}

function claimsOf(token: string): { name: string; scope: string } {
  const part = token.split(".")[1] ?? "";
  const bytes = Uint8Array.from(
    atob(part.replaceAll("-", "+").replaceAll("_", "/")),
    (char) => char.charCodeAt(0),
  );
  return JSON.parse(new TextDecoder().decode(bytes));
}

function post(path: string, body: unknown, half?: string): Promise<Response> {
  return fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...(half === undefined ? {} : { "x-svc-session": half }) },
    body: JSON.stringify(body),
  });
}

function refusal(status: number, detail: unknown): string {
  if (status === 401) return "The name or the password is wrong.";
  if (status === 429) return "Too many attempts. Wait a minute, then try again.";
  return typeof detail === "string" ? detail : `The service refused the login (${status}).`;
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}
