import { percentile, type Row } from "./measure.ts";
import type { BenchService } from "./service.ts";

/** When things happened to one message, Unix ms. */
export interface Times {
  /** Its conversation, which has no other message. */
  sessionKey: string;
  said: number;
  /** The platform was told that it is stored. */
  confirmed: number;
  /** Of the worker's process. */
  began: number;
  ended: number;
  /** The reply arrived. */
  sent: number;
}

/** What the service itself noted of one message, Unix ms: the beginning of each step. */
interface Noted {
  received: number;
  feeding: number;
  routed: number;
  claimed: number;
  completed: number;
  noted: number;
}

/** From an event to the worker's process, and from its end to the sent reply and behind it. */
const STEPS: [what: string, ms: (times: Times, noted: Noted) => number][] = [
  ["event -> received: it came over the connection", ({ said }, { received }) => received - said],
  [
    "received -> stored: committed, and the platform knows",
    ({ confirmed }, { received }) => confirmed - received,
  ],
  [
    "received -> taken up: committed, and the intake is awake",
    (_, { received, feeding }) => feeding - received,
  ],
  ["taken up -> routed: committed, and the bee has read it", (_, { feeding, routed }) => routed - feeding],
  ["routed -> claimed: committed, and a lane is free", (_, { routed, claimed }) => claimed - routed],
  [
    "claimed -> spawned: committed, prepared, and the process is there",
    ({ began }, { claimed }) => began - claimed,
  ],
  ["its end -> noted: output and process are gone", ({ ended }, { completed }) => completed - ended],
  ["noted -> sent: committed, and the outbox has sent it", ({ sent }, { completed }) => sent - completed],
  ["sent -> answered: the platform has taken it", ({ sent }, { noted }) => noted - sent],
];

/** The steps of these messages, in ms: what a slow reply has spent its time on. */
export async function stepRows(service: BenchService, all: readonly Times[]): Promise<Row[]> {
  const noted = await Promise.all(all.map(({ sessionKey }) => notedOf(service, sessionKey)));
  return STEPS.map(([what, ms]) => {
    const values = all.flatMap((times, at) => {
      const one = noted[at];
      return one === undefined ? [] : [ms(times, one)];
    });
    const says = `p99 ${percentile(values, 99).toFixed(1)} ms`;
    return { what: `- ${what} (p50)`, value: percentile(values, 50), unit: "ms", says, goal: "", met: null };
  });
}

async function notedOf(service: BenchService, sessionKey: string): Promise<Noted> {
  const events: { kind: string; at: number }[] = await service.call(
    `GET /api/events?session_key=${sessionKey}`,
  );
  const [execution] = await service.call(`GET /api/executions?session_id=${sessionKey}`);
  const at = (kind: string) => events.find((event) => event.kind === kind)?.at ?? NaN;
  return {
    received: at("message.received"),
    feeding: at("message.feeding"),
    routed: at("message.routed"),
    claimed: execution?.created_at ?? NaN,
    completed: at("execution.completed"),
    noted: at("message.sent"),
  };
}
