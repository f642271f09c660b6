import type { App } from "../harness/service/app.ts";
import type { Json } from "../harness/service/client.ts";

const SESSIONS = "/api/local/sessions";

/** Sends a request as the operator, unless `headers` names another caller, and returns the unread response. */
export async function fetchAs(
  app: App,
  route: string,
  { headers, ...init }: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {},
): Promise<Response> {
  const [method = "", path = ""] = route.split(/ (.*)/);
  const authorization = `Bearer ${await app.token()}`;
  return await app.server.fetch(
    new Request(`http://localhost${path}`, { method, headers: { authorization, ...headers }, ...init }),
  );
}

/** Builds a form with text fields and, if given, a file. */
export function buildForm(fields: Record<string, string>, file?: BlobPart, name = "a.txt"): FormData {
  const form = new FormData();
  if (file !== undefined) form.append("file", new Blob([file]), name);
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  return form;
}

/** Uploads a file to a local session. */
export async function upload(
  app: App,
  id: string,
  content: BlobPart,
  name = "a.txt",
): Promise<{ path: string; name: string; size: number; mime: string }> {
  const reply = await fetchAs(app, `POST ${SESSIONS}/${id}/media`, { body: buildForm({}, content, name) });
  return await reply.json();
}

/** Reads all pages of a list by the header Link, with the total that each page names. */
export async function readAll(app: App, start: string): Promise<{ rows: Json[]; totals: (string | null)[] }> {
  const rows: Json[] = [];
  const totals: (string | null)[] = [];
  for (let address: string | undefined = start; address !== undefined;) {
    const { body, headers } = await app.send(`GET ${address}`, undefined, { accept: "application/json" });
    rows.push(...body);
    totals.push(headers.get("x-total-count"));
    address = /^<(.*)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1];
  }
  return { rows, totals };
}
