import { Connection } from "../connection.ts";
import type { GatewayAccess, PlatformBase } from "../manifest.ts";
import { type Delivery, type Platform, toDeliveryError } from "../platform.ts";
import { ForgeClient, parseThread } from "./client.ts";
import { disarmComment } from "./comment_text.ts";
import { findDeliveryId, isPlainToken, isSignedByForge, readDelivery } from "./delivery.ts";
import { findRefusal, formatEvent } from "./event.ts";
import type { Forge } from "../../domain/call/vocabulary.ts";

/** The parts of a platform that waits for requests and whose replies have any length. */
export const PASSIVE = {
  takesFiles: false,
  start: () => {},
  stop: () => Promise.resolve(),
  cut: (text, media) => [{ text, media }],
} as const satisfies Partial<Platform>;

/** Creates a platform for the events of a forge. Replies are comments through `gateway`; without one they stay in the service. */
export function createForge(
  { name, kind, clock }: PlatformBase<null>,
  forge: Forge,
  gateway: GatewayAccess | null,
): Platform {
  const connection = new Connection(name, clock, "connected");
  const client = gateway === null ? null : new ForgeClient(forge, gateway);
  const watch = async <T>(request: () => Promise<T>): Promise<T> => {
    try {
      const result = await request();
      connection.setState("connected");
      return result;
    } catch (error) {
      const fault = toDeliveryError(error);
      if (fault.why === "unreachable") connection.setState("down", fault.message);
      throw fault;
    }
  };
  return {
    name,
    kind,
    ...PASSIVE,
    deliver: (delivery) => client === null ? Promise.resolve("") : watch(() => comment(client, delivery)),
    events: {
      isSigned: (secret, signed) => isSignedByForge(forge, secret, signed),
      findWeakness: (secret) =>
        isPlainToken(forge, secret)
          ? "checks the plain token of GitLab. Set a signing token (whsec_) there and as its secret"
          : "",
      async read(delivery, { secret, allow, worker }) {
        const event = readDelivery(forge, delivery.headers, delivery.json);
        if (typeof event === "string") return event;
        // Without the account, the service could take its own comment for one of a person.
        const own = client === null ? null : await watch(() => client.findOwnAccount());
        const refusal = findRefusal(event, { allow, names: [worker, own?.name ?? ""], own });
        return refusal || {
          id: findDeliveryId(forge, secret, delivery),
          chat: event.conversation,
          sender: event.author,
          text: formatEvent(event),
          // Comments and issues are about no branch of the service.
          change: event.kind === "check" || event.kind === "review" ? event.change : null,
          excerpts: event.quotes.map((quote) => ({ kind: "quoted" as const, ...quote })),
        };
      },
    },
    async test() {
      if (client === null) return "it takes events; replies stay in the service because it has no gateway";
      return `it takes events and comments as ${(await watch(() => client.findOwnAccount())).name}`;
    },
    health: () => connection.health,
  };
}

// Forges know no key for a repeated request. So each comment names its reply, and a second try looks for it first.
async function comment(client: ForgeClient, { key, chat, part, sentBefore }: Delivery): Promise<string> {
  const thread = parseThread(chat);
  // A branch takes no comments.
  if (thread === null) return "";
  const mark = `<!-- svc:${key} -->`;
  if (sentBefore !== undefined) {
    const found = await client.findComment(thread, mark, sentBefore);
    if (found !== "") return found;
  }
  const file = part.media === null ? "" : `(file: ${part.media.original_name})`;
  const text = [part.text, file].filter((one) => one !== "").join("\n\n");
  return await client.createComment(thread, `${disarmComment(text)}\n\n${mark}`);
}
