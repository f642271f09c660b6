import { refusalFrom } from "./api.ts";
import { authed } from "./session.ts";

/** Saves what a request answers as a file, under the name that the answer or else the caller gives. Throws Refusal. */
export async function saveAnswer(request: Request, name: string): Promise<void> {
  // A link could not send the token.
  const response = await authed(request);
  if (!response.ok) throw refusalFrom(response.status, await response.json().catch(() => null));
  const given = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name || given || "download";
  link.click();
  URL.revokeObjectURL(url);
}
