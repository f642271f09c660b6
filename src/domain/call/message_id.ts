import { line } from "./field.ts";

/** The built-in chat platform. */
export const LOCAL_PLATFORM = "local";

/** Longest message id that comes from outside, in characters. With it every session key that holds one fits its limit. */
const MESSAGE_ID_MAX_CHARACTERS = 240;

/** The id of a message, ours or its platform's (contract 3, Task; contract 8.3). */
export const messageId = line(4 * MESSAGE_ID_MAX_CHARACTERS).refine(
  (value) => [...value].length <= MESSAGE_ID_MAX_CHARACTERS,
  { error: `must be at most ${MESSAGE_ID_MAX_CHARACTERS} characters` },
).meta({ minLength: 1, maxLength: MESSAGE_ID_MAX_CHARACTERS });
