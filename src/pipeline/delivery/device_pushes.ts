// Push to a device: waiting -> sent, failed or skipped. An answer 404 or 410 deletes the device.
import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import type { DevicePushStatus, InboxKind } from "../../domain/call/vocabulary.ts";
import { grants } from "../../domain/call/scope.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import { getInboxScope, INBOX_SINCE_DEFAULT_MS } from "../../domain/system/inbox.ts";
import { type PushResult, sendPush } from "../../platform/web_push.ts";
import { deriveVapidKey } from "../../platform/vapid.ts";
import {
  deleteDevice,
  type DuePush,
  endPush,
  findNextRetryAt,
  listDuePushes,
  postponePush,
  storePause,
} from "../../store/account/device.ts";
import type { SecretStore } from "../../store/account/secret_store.ts";
import type { Statement } from "../../store/db/database.ts";
import { listInboxItems } from "../../store/events/inbox.ts";
import { record } from "../../store/events/journal.ts";
import { findExecution } from "../../store/work/execution.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { Stage, type StageServices, waitBriefly } from "../stage/stage.ts";
import { type DeviceMessage, formatItem, formatRun, formatSeveral } from "./device_text.ts";

const log = createLogger("devices");

/** Most pushes in flight. Each device has one at most. */
const PUSHES_IN_FLIGHT_MAX = 32;
const PUSH_ATTEMPTS_MAX = 10;
/** An older push is of no use. */
const PUSH_AGE_MAX_MS = 24 * 60 * 60_000;
// The pause of a device after failures. It grows until a push succeeds.
const PAUSE: Backoff = { firstMs: 5_000, lastMs: 60 * 60_000 };
/** The kind of a push for a completed run. All others are kinds of inbox items. */
export const RUN_KIND = "execution";

interface DeviceOptions extends StageServices {
  secrets: SecretStore;
  allowPrivate: boolean;
  /** The signing key, from which the key of the pushes is derived. */
  key: () => Uint8Array;
  publicUrl: () => string;
}

/** Creates the stage that sends waiting pushes, one at a time for each device. A slow push service delays only its own devices. */
export function createDevicePushes(
  options: DeviceOptions,
): { stage: Stage; settled: () => Promise<void> } {
  const { db, clock } = options;
  const busy = new Map<string, Promise<void>>();
  const stage = new Stage(options, { name: "devices", wakeup: WAKEUP.device, step });
  return { stage, settled: () => waitBriefly([...busy.values()]) };

  async function step(signal: AbortSignal): Promise<number> {
    const now = clock.now();
    for (const push of await listDuePushes(db, now)) {
      if (busy.has(push.device_id) || busy.size === PUSHES_IN_FLIGHT_MAX) continue;
      const sending = deliver(options, push, signal)
        .catch((error) => log.error("Cannot send to the device {name}: {error}", { name: push.name, error }))
        .then(() => {
          busy.delete(push.device_id);
          stage.wake();
        });
      busy.set(push.device_id, sending);
    }
    const next = await findNextRetryAt(db);
    return next === null ? Infinity : Math.max(0, next - now) || Infinity;
  }
}

async function deliver(options: DeviceOptions, push: DuePush, signal: AbortSignal): Promise<void> {
  const { db, clock, key, publicUrl, allowPrivate } = options;
  const vapid = await deriveVapidKey(key());
  if (push.is_ended === 1) return await removeDevice(options, push, "its login has ended");
  if (push.server_key !== vapid.publicKey) {
    return await removeDevice(options, push, "it subscribed with another signing key");
  }
  const now = clock.now();
  const message = await buildMessage(options, push);
  if (typeof message === "string") {
    await db.write(endPush(push, { status: "skipped", response: 0, error: message }, now));
    return;
  }
  const topic = push.id.replaceAll("-", "");
  const { endpoint, p256dh, auth } = push;
  const result = await sendPush({
    endpoint,
    keys: { p256dh, auth },
    text: JSON.stringify({ ...message, tag: topic }),
    topic,
    isUrgent: push.kind !== RUN_KIND,
  }, { key: vapid, contact: buildContact(publicUrl()), allowPrivate, now, signal });
  // The next start sends it again, with the same topic.
  if (signal.aborted && result.status === 0) return;
  faultPoint("device.post");
  await storeResult(options, push, result);
}

/** Builds the message from the rows of this moment. Returns the reason when there is nothing to send to this user any more. */
async function buildMessage(
  { db, clock, secrets }: DeviceOptions,
  { kind, item_id, items, tell, role, created_at }: DuePush,
): Promise<DeviceMessage | string> {
  const now = clock.now();
  const scopes = ROLE_SCOPES[role];
  const wants = JSON.parse(tell) as { needs_you: boolean; finished: boolean; text: boolean };
  const isRun = kind === RUN_KIND;
  if (now - created_at > PUSH_AGE_MAX_MS) return "it is older than a day";
  if (!(isRun ? wants.finished : wants.needs_you)) return "its user turned it off";
  const scope = isRun ? "read:executions" : getInboxScope(kind as InboxKind);
  if (!grants(scopes, scope)) return `its user lacks the scope ${scope}`;
  if (items > 1) return formatSeveral(items, isRun);
  if (isRun) {
    const run = await findExecution(db, item_id);
    return run === null ? "the run was deleted" : formatRun(run, wants.text);
  }
  const since = created_at - INBOX_SINCE_DEFAULT_MS;
  const found = await listInboxItems(db, { since, now, lost: await secrets.listLost() });
  const item = found.find((one) => one.kind === kind && one.id === item_id);
  return item === undefined ? "the item is no longer in the inbox" : formatItem(item, wants.text);
}

async function storeResult(options: DeviceOptions, push: DuePush, result: PushResult): Promise<void> {
  const { db, clock } = options;
  const { status: response, error, retryAfterMs, isFinal } = result;
  const now = clock.now();
  const end = (status: Exclude<DevicePushStatus, "waiting">) =>
    endPush(push, { status, response, error }, now);
  if (response === 404 || response === 410) return await removeDevice(options, push, error, end("failed"));
  if (error === "") {
    const pause = push.failures === 0 ? [] : [storePause(push.device_id, 0, 0)];
    await db.write([...end("sent"), ...pause]);
    return;
  }
  const failures = push.failures + 1;
  const pauseMs = Math.max(retryAfterMs ?? 0, backoffMs(PAUSE, failures));
  log.debug("Cannot send to the device {name}: {error}", { name: push.name, error });
  const isOver = isFinal || push.attempt + 1 >= PUSH_ATTEMPTS_MAX;
  await db.write([
    ...(isOver ? end("failed") : postponePush(push, { response, error })),
    storePause(push.device_id, failures, now + pauseMs),
  ]);
}

async function removeDevice(
  { db, clock }: DeviceOptions,
  { device_id, name, user_id }: DuePush,
  reason: string,
  before: Statement[] = [],
): Promise<void> {
  log.info("The device {name} was removed: {reason}", { name, reason });
  const data = { device_id, name, user_id, reason };
  await db.write([
    ...before,
    ...deleteDevice(device_id),
    record(clock.now(), { kind: "device.deleted", data }),
  ]);
}

// A push service may refuse an address without a domain.
function buildContact(publicUrl: string): string {
  return publicUrl.startsWith("https:") ? publicUrl : "mailto:svc@localhost";
}
