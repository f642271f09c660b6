import type { Media } from "../domain/message.ts";

/** A message on its way out. */
export interface Delivery {
  id: string;
  session_key: string;
  message_id: string;
  content: string;
  media: Media | null;
}

/**
 * A chat platform that is not built in. `deliver` resolves when the platform has taken the message and throws when
 * it has not; it is called again then, so it should pass on `id` where the platform can recognise a repetition.
 */
export interface Platform {
  readonly name: string;
  deliver(delivery: Delivery): Promise<void>;
}
