import OpenAI, { APIError, type ClientOptions } from "openai";
import { expect } from "vitest";
import type { App } from "./app.ts";

/** The scopes of clients of /v1. */
export const SCOPES = ["write:chat", "write:tasks"];

let tokens = 0;

/** Creates a client of the real package with a new token. The client does not retry, unless the options say so. */
export async function connectOpenAi(
  app: Pick<App, "call" | "url">,
  scopes: string[] = SCOPES,
  options: ClientOptions = {},
): Promise<OpenAI> {
  const { token } = await app.call("POST /api/tokens", { name: `client-${tokens++}`, scopes });
  return new OpenAI({ baseURL: `${app.url}/v1`, apiKey: token, maxRetries: 0, ...options });
}

/** Builds the messages of a request with one text of the user. */
export function say(content: string) {
  return [{ role: "user" as const, content }];
}

/** Returns the error of a request that must fail. */
export async function getError(work: PromiseLike<unknown>): Promise<APIError> {
  const error = await Promise.resolve(work).then(() => null, (error) => error);
  expect(error).toBeInstanceOf(APIError);
  return error;
}
