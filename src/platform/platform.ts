import type { Media } from "../domain/message.ts";

/** A message that is to be delivered. */
interface Delivery {
  id: string;
  session_key: string;
  message_id: string;
  content: string;
  media: Media | null;
}

/**
 * A chat platform that is not built in. `deliver` resolves when the platform has taken the message and throws when it has
 * not. It is called again then, so it passes `id` on where the platform recognises repeated messages.
 */
export interface Platform {
  readonly name: string;
  deliver(delivery: Delivery): Promise<void>;
}
