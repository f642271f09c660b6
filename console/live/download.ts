import { refusalFrom } from "./api.ts";
import { authed } from "./session.ts";

/** Saves what a request answers as a file, under the name that the answer says. Throws Refusal. */
export async function saveAnswer(request: Request): Promise<void> {
  // A link could not send the token.
  const response = await authed(request);
  if (!response.ok) throw refusalFrom(response.status, await response.json().catch(() => null));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = nameOf(response.headers.get("content-disposition") ?? "");
  link.click();
  URL.revokeObjectURL(url);
}

// The exact name, which may have any letters, comes after the plain one.
function nameOf(disposition: string): string {
  const exact = /filename\*=UTF-8''([^;]+)/.exec(disposition)?.[1];
  if (exact !== undefined) return decodeURIComponent(exact);
  return /filename="([^"]+)"/.exec(disposition)?.[1] ?? "download";
}
