import { signal } from "@preact/signals";
import { ApiError } from "./api_error.ts";

/** `expired`: the session ended while a page was open. The login covers the page. */
type SessionState = "starting" | "out" | "in" | "expired";

export const sessionState = signal<SessionState>("starting");

export const username = signal("");

/** How often a user has signed in on this page. A resumed session does not count. */
export const signIns = signal(0);

/** A link that signs in as another user, until the user of this session accepts or declines it. */
export const offeredLogin = signal<{ code: string; text: string } | null>(null);

/** False while the service does not respond at the start. */
export const reachable = signal(true);

const scopes = signal<readonly string[]>([]);

// Only this file reads the session. The access token is only in memory. Its renewal needs two halves: the value under this
// key, and a cookie that no script can read. Neither works alone.
const SESSION = "svc.session";
// The owner of the drafts in this tab.
const OWNER = "svc.owner";
const START_RETRY_MS = 2_000;

let access = "";
let leaving: Promise<unknown> = Promise.resolve();
let renewing: Promise<boolean> | null = null;
let entered = Promise.withResolvers<void>();

/** Resumes the session of this browser if it is still valid. Waits for a service that does not respond. */
export async function startSession(): Promise<void> {
  addEventListener("storage", (event) => {
    if (event.key === SESSION) void followOtherTab(event.newValue);
  });
  const code = takeCode();
  while (localStorage.getItem(SESSION) !== null) {
    try {
      const renewed = await renew();
      reachable.value = true;
      if (renewed) return code === null ? undefined : await enterByCode(code);
      break;
    } catch {
      reachable.value = false;
      await new Promise((resolve) => setTimeout(resolve, START_RETRY_MS));
    }
  }
  if (code !== null) await enterByCode(code);
  if (sessionState.value === "starting") sessionState.value = "out";
}

// A code of `svc ctl console` or of an OpenID provider is valid once, and must not stay in the address.
function takeCode(): string | null {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

// The service refuses to replace the login of another user without `replace`.
async function enterByCode(code: string, replace = false): Promise<void> {
  const half = sessionState.value === "in" ? localStorage.getItem(SESSION) ?? undefined : undefined;
  const response = await post("/api/auth/login", { code, browser: true, replace }, half).catch(() => null);
  const body = await response?.json().catch(() => ({}));
  if (response?.status === 409) {
    offeredLogin.value = { code, text: body.errors?.[0]?.message ?? "signs in another user" };
  }
  if (!response?.ok) return;
  localStorage.setItem(SESSION, body.session);
  signIns.value++;
  enter(body.access_token);
}

/** Signs in as the user of the offered link. The page reloads. */
export async function acceptLogin(): Promise<void> {
  const offer = offeredLogin.value;
  offeredLogin.value = null;
  if (offer !== null) await enterByCode(offer.code, true);
}

/** Signs in. Throws ApiError with a text for the user. */
export async function signIn(name: string, password: string): Promise<void> {
  // The response to a logout deletes the cookie. It must arrive before this login sets a new one.
  await leaving;
  const response = await post("/api/auth/login", { username: name, password, browser: true }).catch(() =>
    null
  );
  if (response === null) throw new ApiError(0, "unreachable", "The service does not respond. Is it running?");
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new ApiError(response.status, "login", explainFailure(response.status, body.detail));
  }
  localStorage.setItem(SESSION, body.session);
  signIns.value++;
  enter(body.access_token);
}

const signOutListeners = new Set<() => void>();

/** Calls `listener` when the user signs out in this browser. */
export function onSignOut(listener: () => void): void {
  signOutListeners.add(listener);
}

/** Signs out in this browser, and ends the session on the server. */
export async function signOut(): Promise<void> {
  const half = localStorage.getItem(SESSION);
  leave("out");
  localStorage.removeItem(SESSION);
  clearDrafts();
  for (const listener of signOutListeners) listener();
  if (half === null) return;
  leaving = post("/api/auth/logout", {}, half).catch(() => null);
  await leaving;
}

/**
 * Sends a request with the user's token. An expired token is renewed once for all waiting requests. If that fails, the page opens the
 * login and the request waits for it, so that no input is lost.
 */
export async function sendAuthorized(request: Request): Promise<Response> {
  for (;;) {
    await waitUnlessAborted(entered.promise, request.signal);
    const used = access;
    const attempt = new Request(request.clone());
    attempt.headers.set("authorization", `Bearer ${used}`);
    const response = await fetch(attempt);
    if (response.status !== 401) return response;
    if (used === access && !await renew()) leave("expired");
  }
}

/** Returns the current token, for uploads with progress, which sendAuthorized() cannot send. */
export function getAccessToken(): string {
  return access;
}

/** Whether the user has this scope. A page hides the actions that the user has no scope for. */
export function hasScope(scope: string): boolean {
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
  const half = localStorage.getItem(SESSION);
  if (half === null) return false;
  const response = await post("/api/auth/refresh", {}, half);
  if (response.status === 401) return false;
  if (!response.ok) throw new Error(`The session could not be renewed: ${response.status}`);
  enter((await response.json()).access_token);
  return true;
}

function enter(token: string): void {
  access = token;
  const claims = parseClaims(token);
  // Another user must not see the drafts or the loaded data of the previous one.
  if ((sessionStorage.getItem(OWNER) ?? claims.name) !== claims.name) clearDrafts();
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

// A sign-in or sign-out in another tab also applies to this tab.
async function followOtherTab(stored: string | null): Promise<void> {
  if (stored === null) {
    leave("out");
    clearDrafts();
  } else if (sessionState.value !== "in") await renew().catch(() => false);
}

function clearDrafts(): void {
  sessionStorage.clear();
}

function parseClaims(token: string): { name: string; scope: string } {
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

function explainFailure(status: number, detail: unknown): string {
  if (status === 401) return "The name or the password is wrong.";
  if (status === 429) return "Too many attempts. Wait a minute, then try again.";
  return typeof detail === "string" ? detail : `The service refused the login (${status}).`;
}

function waitUnlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}
