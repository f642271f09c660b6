// Groups received messages to be joined into one message.
import { LRUCache } from "lru-cache";
import type { Config } from "../../config/schema.ts";
import { LOCAL_PLATFORM } from "../../domain/call/message_id.ts";
import { type Candidate, findMentions } from "../../domain/chat/routing.ts";
import type { Database } from "../../store/db/database.ts";
import { findMessageText } from "../../store/chat/inbound_part.ts";
import type { WaitingMessage } from "../../store/chat/inbound.ts";
import { findDefaultWorker } from "./routing_rules.ts";

// Messages whose mentions are remembered between rounds.
const REMEMBERED_MESSAGES = 1_000;

/** Messages to be joined into one. A complete group does not wait for more messages. */
interface MessageGroup {
  parts: WaitingMessage[];
  isComplete: boolean;
}

interface OpenGroup extends MessageGroup {
  /** The worker that the group is for, if a rule has already chosen one. */
  workerId: string | null;
  /** Whether the message names several workers. Then only its own files join the group. */
  isForSeveral: boolean;
}

/** Joins messages of one sender to one worker (contract 4.2). */
export class MessageGrouping {
  readonly #db: Database;
  readonly #config: Pick<Config, "platforms">;
  /** Cache: ids of the workers that each message names. */
  readonly #named = new LRUCache<string, string[]>({ max: REMEMBERED_MESSAGES });
  /** Ids and names of the workers for which `#named` is valid. If they change, group() empties `#named`. */
  #workers = "";

  constructor(db: Database, config: Pick<Config, "platforms">) {
    this.#db = db;
    this.#config = config;
  }

  /** Groups messages that are listed by session in order of arrival. A message with `alone` completes the groups before it (contract 8.8). */
  async group(
    messages: readonly WaitingMessage[],
    listCandidates: () => Promise<Candidate[]>,
  ): Promise<MessageGroup[]> {
    const groups: OpenGroup[] = [];
    let candidates: Candidate[] = [];
    for (const session of Map.groupBy(messages, ({ session_key }) => session_key).values()) {
      const isSingle = session.length === 1;
      if (!isSingle && candidates.length === 0) this.#forgetOtherWorkers(candidates = await listCandidates());
      const open = new Map<string, OpenGroup>();
      for (const message of session) {
        const sender = `${message.is_data} ${message.sender}`;
        const before = message.alone ? undefined : open.get(sender);
        const named = isSingle ? [] : await this.#findNamed(message, candidates);
        if (before !== undefined && joins(message, named, before)) {
          before.parts.push(message);
          before.workerId ??= findAddressee(message, named);
          continue;
        }
        if (message.alone) { for (const group of open.values()) group.isComplete = true; }
        else if (before !== undefined) before.isComplete = true;
        const group = {
          parts: [message],
          isComplete: Boolean(message.alone),
          workerId: named[0] ?? findDefaultWorker(this.#config, message, candidates),
          isForSeveral: named.length > 1,
        };
        groups.push(group);
        if (!message.alone) open.set(sender, group);
      }
    }
    return groups;
  }

  #forgetOtherWorkers(candidates: readonly Candidate[]): void {
    const workers = JSON.stringify(candidates.map(({ id, name }) => [id, name]));
    if (workers !== this.#workers) this.#named.clear();
    this.#workers = workers;
  }

  async #findNamed(message: WaitingMessage, candidates: readonly Candidate[]): Promise<string[]> {
    if (message.has_mention === 0 || message.is_data === 1) return [];
    const known = this.#named.get(message.id);
    if (known !== undefined) return known;
    const text = await findMessageText(this.#db, message.id);
    const named = findMentions(text?.content ?? "", candidates).workers.map(({ id }) => id);
    this.#named.set(message.id, named);
    return named;
  }
}

function joins(message: WaitingMessage, named: readonly string[], group: OpenGroup): boolean {
  if (group.isComplete) return false;
  const addressee = findAddressee(message, named);
  // A further file replies to the same worker as the part before it, or addresses no worker.
  const isFurther = addressee === null || message.worker_id === group.parts.at(-1)?.worker_id;
  if (message.bytes === 0 && isFurther) return true;
  if (group.isForSeveral || named.length > 1) return false;
  return addressee === null || group.workerId === null || addressee === group.workerId;
}

/** Finds the worker that a message names or replies to. */
function findAddressee({ platform, worker_id }: WaitingMessage, named: readonly string[]): string | null {
  return named[0] ?? (platform === LOCAL_PLATFORM ? null : worker_id);
}
