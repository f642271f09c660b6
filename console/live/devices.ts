import { effect, signal } from "@preact/signals";
import { api, load, type Schemas } from "./api.ts";
import { registerServiceWorker } from "./service_worker.ts";
import { onSignOut, sessionState, signIns, username } from "./session.ts";

type Tell = Schemas["DeviceTell"];

/** The subscription of this browser, as the service stored it for a user. */
interface StoredDevice {
  id: string;
  user: string;
  tell: Tell;
}

const STORED = "svc.device";
const NOTHING: Tell = { needs_you: false, finished: false, text: false };

const stored = signal(readStored());

/** Returns the notifications that this browser receives from the service, also while the console is closed. */
export function getTell(): Tell {
  const { value } = stored;
  return value !== null && value.user === username.value ? value.tell : NOTHING;
}

/** Returns the id of this browser's device, or "". */
export function getDeviceId(): string {
  return stored.value?.user === username.value ? stored.value?.id ?? "" : "";
}

/** Whether the browser supports notifications from a push service. Safari on a phone does so in the installed console only. */
export function canReceivePushes(): boolean {
  return "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;
}

/** Subscribes this browser, or changes what it receives. Throws with a text for the user. */
export async function changeTell(tell: Tell): Promise<void> {
  if (!tell.needs_you && !tell.finished) return await removeDevice();
  if (await Notification.requestPermission() !== "granted") {
    throw new Error("This browser blocks notifications. Allow them in the settings of the browser.");
  }
  await sendSubscription(tell);
}

/** Ends the notifications of this browser. */
async function removeDevice(): Promise<void> {
  const id = getDeviceId();
  await forget();
  if (id !== "") await load(api.DELETE("/api/push/devices/{id}", { params: { path: { id } } }));
}

async function sendSubscription(tell: Tell): Promise<void> {
  const { public_key } = await load(api.GET("/api/push/key"));
  const subscription = await subscribe(decode(public_key));
  const { endpoint = "", keys = {} } = subscription.toJSON();
  const { p256dh = "", auth = "" } = keys;
  const body = { endpoint, keys: { p256dh, auth }, tell, name: describeBrowser(navigator.userAgent) };
  const { id } = await load(api.POST("/api/push/devices", { body }));
  store({ id, user: username.value, tell });
}

/** Returns the subscription of this browser. Replaces one for another key of the service. */
async function subscribe(key: Uint8Array<ArrayBuffer>): Promise<PushSubscription> {
  const registration = await registerServiceWorker();
  await untilActive(registration);
  const known = await registration.pushManager.getSubscription();
  const knownKey = new Uint8Array(known?.options.applicationServerKey ?? new ArrayBuffer(0));
  if (known !== null && knownKey.join() === key.join()) return known;
  await known?.unsubscribe();
  return await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}

function untilActive({ installing, waiting, active }: ServiceWorkerRegistration): Promise<void> {
  const worker = installing ?? waiting;
  if (active !== null || worker === null) return Promise.resolve();
  return new Promise((resolve) => {
    worker.addEventListener("statechange", () => worker.state === "activated" && resolve());
  });
}

/**
 * Renews the subscription after each login, because a device ends with the login that added it. The device of another user of this
 * browser ends here, and one that its user deleted elsewhere.
 */
export function followSession(): void {
  if (!canReceivePushes()) return;
  onSignOut(() => void forget().catch(() => {}));
  effect(() => {
    if (sessionState.value !== "in") return;
    void renew(signIns.value > 0).catch(() => {});
  });
}

async function renew(hasSignedIn: boolean): Promise<void> {
  const device = stored.peek();
  if (device === null) return;
  if (device.user !== username.peek() || Notification.permission !== "granted") return await forget();
  if (hasSignedIn) await sendSubscription(device.tell);
  else if (!await isKnown(device.id)) await forget();
}

async function isKnown(id: string): Promise<boolean> {
  const devices = await load(api.GET("/api/push/devices", { params: { query: { ref: id } } }));
  return devices.length > 0;
}

async function forget(): Promise<void> {
  store(null);
  const registration = await navigator.serviceWorker.getRegistration("/console/");
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

function store(device: StoredDevice | null): void {
  stored.value = device;
  if (device === null) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, JSON.stringify(device));
}

function readStored(): StoredDevice | null {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "null");
  } catch {
    return null;
  }
}

const BROWSERS = [[/Edg/, "Edge"], [/Firefox|FxiOS/, "Firefox"], [/Chrome|CriOS/, "Chrome"], [
  /Safari/,
  "Safari",
]] as const;
const SYSTEMS = [
  [/Android/, "Android"],
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Windows/, "Windows"],
  [/Mac OS/, "macOS"],
  [/Linux|CrOS/, "Linux"],
] as const;

/** Returns a name such as "Chrome on Android". */
function describeBrowser(userAgent: string): string {
  const find = (names: readonly (readonly [RegExp, string])[], otherwise: string) =>
    names.find(([pattern]) => pattern.test(userAgent))?.[1] ?? otherwise;
  return `${find(BROWSERS, "Browser")} on ${find(SYSTEMS, "another system")}`;
}

function decode(text: string): Uint8Array<ArrayBuffer> {
  const characters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(characters, (character) => character.charCodeAt(0));
}
