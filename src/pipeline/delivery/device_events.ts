// Finds what devices should receive: new inbox items and completed runs become waiting pushes.
import { createId } from "../../base/id.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { getInboxScope, INBOX_SINCE_DEFAULT_MS } from "../../domain/system/inbox.ts";
import {
  findWants,
  forgetDeviceState,
  insertPush,
  listFinishedDevices,
  listInboxDevices,
} from "../../store/account/device.ts";
import type { SecretStore } from "../../store/account/secret_store.ts";
import type { Statement } from "../../store/db/database.ts";
import { findSetting, storeSetting } from "../../store/db/setting.ts";
import { listInboxItems } from "../../store/events/inbox.ts";
import { listEvents } from "../../store/events/journal.ts";
import { ASIDE_MS, Stage, type StageServices } from "../stage/stage.ts";
import { RUN_KIND } from "./device_pushes.ts";

// The shortest time between two reads of the inbox, which cost more than those of the journal.
const GATHER_MS = 200;
const EVENTS_PER_ROUND = 200;
/** Most pushes of one kind for a device in a round. More become one push with their number. */
const DEVICE_BURST_MAX = 5;
// Older runs cause no push: the service was down.
const OLD_MS = 60 * 60_000;

interface DeviceEventOptions extends StageServices {
  secrets: SecretStore;
}

/** Creates the stage that writes a push for each new inbox item and each completed run, with the position in the same batch. */
export function createDeviceEvents(options: DeviceEventOptions): Stage {
  const { db, clock } = options;
  let hasState = true;
  let readAt = -Infinity;
  return new Stage(options, { name: "device events", wakeup: WAKEUP.journal, pauseMs: ASIDE_MS, step });

  async function step(): Promise<number> {
    const wants = await findWants(db);
    if (!wants.any) {
      if (hasState) await db.write([forgetDeviceState()]);
      hasState = false;
      return Infinity;
    }
    hasState = true;
    const hasMore = await addCompletedRuns(options);
    const waitMs = wants.needs_you ? readAt + GATHER_MS - clock.monotonic() : Infinity;
    if (waitMs <= 0) {
      readAt = clock.monotonic();
      await addInboxItems(options);
    }
    return hasMore ? 0 : waitMs > 0 ? waitMs : Infinity;
  }
}

async function addInboxItems({ db, clock, secrets }: DeviceEventOptions): Promise<void> {
  const now = clock.now();
  const stored = await findSetting(db, "device_inbox");
  const lost = await secrets.listLost();
  const items = await listInboxItems(db, { since: now - INBOX_SINCE_DEFAULT_MS, now, lost });
  const keys = JSON.stringify(items.map(({ kind, id }) => `${kind} ${id}`).sort());
  if (keys === stored) return;
  const known = stored === null ? null : new Set(JSON.parse(stored) as string[]);
  const statements: Statement[] = [storeSetting("device_inbox", keys)];
  for (const device of await listInboxDevices(db)) {
    // The first round after a registration has no earlier inbox to compare with.
    const added = items.filter(({ kind, id, at }) =>
      known === null ? at >= device.created_at : !known.has(`${kind} ${id}`)
    );
    // A push about several items has to be for users who may read all of them.
    const byScope = Map.groupBy(added, ({ kind }) => getInboxScope(kind));
    for (const some of byScope.values()) statements.push(...buildPushes(device.id, some, now));
  }
  await db.write(statements);
}

/** Returns whether more events may follow. */
async function addCompletedRuns({ db, clock }: DeviceEventOptions): Promise<boolean> {
  const cursor = await findSetting(db, "device_cursor");
  if (cursor === null) return false;
  const kinds = ["execution.completed"];
  const events = await listEvents(db, Number(cursor), EVENTS_PER_ROUND, { kinds });
  const last = events.at(-1)?.seq;
  if (last === undefined) return false;
  const now = clock.now();
  const recent = events.filter(({ at }) => at >= now - OLD_MS);
  const rows = await listFinishedDevices(db, recent.map(({ execution_id }) => execution_id));
  const byDevice = Map.groupBy(rows, ({ id }) => id);
  await db.write([
    storeSetting("device_cursor", String(last)),
    ...[...byDevice].flatMap(([id, runs]) =>
      buildPushes(id, runs.map(({ execution_id }) => ({ kind: RUN_KIND, id: execution_id })), now)
    ),
  ]);
  return events.length === EVENTS_PER_ROUND;
}

function buildPushes(
  deviceId: string,
  items: readonly { kind: string; id: string }[],
  now: number,
): Statement[] {
  const [first] = items;
  if (first === undefined) return [];
  const build = (item: { kind: string; id: string }, count: number) =>
    insertPush({ id: createId(), device_id: deviceId, kind: item.kind, item_id: item.id, items: count }, now);
  if (items.length <= DEVICE_BURST_MAX) return items.map((item) => build(item, 1));
  return [build({ kind: first.kind, id: "" }, items.length)];
}
