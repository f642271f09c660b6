import { notFound } from "../../domain/call/error.ts";
import type { DeleteResult } from "../../domain/call/deleted.ts";
import { joinJson } from "../../domain/call/json.ts";
import type { PlatformStatus, PlatformTest } from "../../domain/chat/platform.ts";
import type { Health } from "../../platform/platform.ts";
import { countWaitingReplies } from "../../store/chat/outbound_part.ts";
import { deleteSender, listSenders as listSenderRows } from "../../store/chat/platform.ts";
import { type Answer, answer, answerList, DELETED, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import type { PlatformConnection, Platforms } from "../call/platforms.ts";
import type { Check } from "../../domain/system/system.ts";

/** Lists `local` and the configured platforms by name. */
export async function listPlatforms(deps: Deps<"db" | "platforms" | "lifecycle">) {
  return answerList(await listPlatformStates(deps));
}

export async function getPlatform(deps: Deps<"db" | "platforms" | "lifecycle">, name: string) {
  requirePlatform(deps.platforms, name);
  const all = await listPlatformStates(deps);
  const found = requireFound(all.find((one) => one.name === name), "platform", name);
  return answer(found);
}

export async function listPlatformStates(
  { db, platforms, lifecycle }: Deps<"db" | "platforms" | "lifecycle">,
): Promise<PlatformStatus[]> {
  const waiting = new Map((await countWaitingReplies(db)).map((row) => [row.platform, row]));
  return [...platforms.values()].map(({ rules, platform, problem }) => {
    const unused = { since: lifecycle.startedAt, last_event_at: null };
    const off: Health = problem === undefined
      ? { ...unused, state: "off", error: "" }
      : { ...unused, state: "refused", error: problem };
    const { state, since, last_event_at, error } = platform?.health() ?? off;
    const queue = waiting.get(rules.name);
    return {
      name: rules.name,
      kind: rules.kind,
      state,
      since,
      error,
      last_event_at,
      waiting: queue?.waiting ?? 0,
      waiting_since: queue?.since ?? null,
    };
  });
}

/** Lists the paired senders. Throws `not_found`. */
export async function listSenders({ db, platforms }: Deps<"db" | "platforms">, name: string) {
  requirePlatform(platforms, name);
  const senders = await listSenderRows(db, name);
  return { json: joinJson(senders), total: senders.length, next: null };
}

/** Removes a sender's access immediately. Throws `not_found`. */
export async function revokeSender(
  { db, clock, platforms }: Deps<"db" | "clock" | "platforms">,
  call: Call,
  name: string,
  sender: string,
): Promise<Answer<DeleteResult>> {
  requirePlatform(platforms, name);
  await db.writeOr([
    ...deleteSender(name, sender),
    recordBy(call, clock.now(), { kind: "platform.revoked", data: { platform: name, sender } }),
  ], () => notFound("sender", sender));
  return DELETED;
}

/** Checks the credentials with the platform. Throws `not_found`. */
export async function testPlatform(
  { db, clock, platforms }: Deps<"db" | "clock" | "platforms">,
  call: Call,
  name: string,
): Promise<Answer<PlatformTest>> {
  const { platform, problem } = requirePlatform(platforms, name);
  const result = platform === null
    ? { ok: false, detail: problem ?? "the platform is disabled (platforms.<name>.enabled)" }
    : await platform.test().then(
      (detail) => ({ ok: true, detail }),
      (error) => ({ ok: false, detail: error instanceof Error ? error.message : String(error) }),
    );
  await db.write([recordBy(call, clock.now(), {
    kind: "platform.tested",
    data: { platform: name, ok: result.ok },
  })]);
  return answer(result);
}

function requirePlatform(platforms: Platforms, name: string): PlatformConnection {
  return requireFound(platforms.get(name), "platform", name);
}

// A reply that waits this long is a fault.
const WAITING_WARN_MS = 10 * 60_000;

/** Checks the connections of the platforms and the replies that wait for them. */
export async function checkPlatforms(
  deps: Deps<"db" | "platforms" | "lifecycle" | "clock" | "secrets">,
): Promise<Omit<Check, "name">> {
  const all = (await listPlatformStates(deps)).filter(({ kind }) => kind !== "local");
  if (all.length === 0) return { status: "ok", detail: "none is configured", hint: "" };
  const now = deps.clock.now();
  const wrong = all.filter(({ state }) => ["down", "refused", "limited"].includes(state));
  const late = all.filter(({ waiting_since }) =>
    waiting_since !== null && now - waiting_since > WAITING_WARN_MS
  );
  const words = [
    ...wrong.map(({ name, state, error }) => `${name} is ${state}: ${error}`),
    ...late.map(({ name, waiting }) => `${waiting} replies wait for ${name}`),
    ...await listWeakSecrets(deps),
  ];
  if (words.length === 0) {
    return { status: "ok", detail: all.map(({ name, state }) => `${name} is ${state}`).join(", "), hint: "" };
  }
  return {
    status: "warn",
    detail: words.join("; "),
    hint: wrong.some(({ state }) => state === "refused")
      ? "Correct the platform's key in the configuration and restart the service."
      : "Run `svc ctl platform list` and `svc ctl platform test <name>`.",
  };
}

async function listWeakSecrets({ platforms, secrets }: Deps<"platforms" | "secrets">): Promise<string[]> {
  const words: string[] = [];
  for (const [name, { config, platform }] of platforms) {
    if (config?.kind !== "webhook" || platform?.events === undefined) continue;
    const secret = await secrets.resolve(config.secret).catch(() => null);
    const weakness = secret === null ? "" : platform.events.findWeakness(secret);
    if (weakness !== "") words.push(`${name} ${weakness}`);
  }
  return words;
}
