import { parseProblem } from "./api.ts";
import { sendAuthorized } from "./session.ts";

/** Saves the answer to a request as a file, under the name in the answer or else `name`. Throws ApiError. */
export async function saveAnswer(request: Request, name = "download"): Promise<void> {
  // A plain link cannot send the token.
  const response = await sendAuthorized(request);
  if (!response.ok) throw parseProblem(response.status, await response.json().catch(() => null));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = parseFilename(response.headers.get("content-disposition") ?? "") || name;
  link.click();
  URL.revokeObjectURL(url);
}

// `filename*` has the exact name in UTF-8, `filename` an ASCII form of it.
function parseFilename(disposition: string): string {
  const exact = /filename\*=UTF-8''([^;]+)/.exec(disposition)?.[1];
  if (exact !== undefined) return decodeURIComponent(exact);
  return /filename="([^"]+)"/.exec(disposition)?.[1] ?? "";
}
