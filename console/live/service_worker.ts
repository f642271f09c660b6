import { navigate } from "wouter-preact/use-browser-location";

const SCRIPT = "/console/sw.js";
const SCOPE = "/console/";

interface TrustedTypes {
  createPolicy: (
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ) => { createScriptURL: (url: string) => string };
}

// The Content-Security-Policy allows this one policy, whose only address is that of the service worker.
const policy = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy("svc-worker", {
  createScriptURL: () => SCRIPT,
});

/** Installs the service worker, and opens the page that it asks for after a click on a notification. */
export function startServiceWorker(): void {
  // Browsers have no service workers on plain http.
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.addEventListener("message", ({ data }) => {
    const path = (data as { path?: unknown } | null)?.path;
    if (typeof path === "string" && /^\/console(\/|$)/.test(path)) navigate(path);
  });
  navigator.serviceWorker.startMessages();
  // Without a service worker the console works, but shows no notifications while it is closed.
  registerServiceWorker().catch(() => {});
}

/** Returns the registration of the console's service worker. */
export function registerServiceWorker(): Promise<ServiceWorkerRegistration> {
  const script = policy?.createScriptURL("") ?? SCRIPT;
  return navigator.serviceWorker.register(script, { scope: SCOPE, updateViaCache: "none" });
}
