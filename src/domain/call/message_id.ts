import { line } from "./field.ts";

export const LOCAL_PLATFORM = "local";

/** The platform in the session keys of clients of /v1, whose replies are in the response. */
export const API_PLATFORM = "api";

/** Longest external message id, in characters. Every session key that contains one fits its limit. */
const MESSAGE_ID_MAX_CHARACTERS = 240;

/** A message id of the service or of a platform (contract 8.3). */
export const messageId = line(4 * MESSAGE_ID_MAX_CHARACTERS).refine(
  (value) => [...value].length <= MESSAGE_ID_MAX_CHARACTERS,
  { error: `must be at most ${MESSAGE_ID_MAX_CHARACTERS} characters` },
).meta({ minLength: 1, maxLength: MESSAGE_ID_MAX_CHARACTERS });
