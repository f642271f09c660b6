import { WAKEUP } from "../../base/wakeups.ts";
import {
  type Device,
  DEVICE_PUSHES_WAITING_MAX,
  type DeviceFilter,
  deviceSchema,
} from "../../domain/account/device.ts";
import type { Role } from "../../domain/call/vocabulary.ts";
import type { Listing } from "../../domain/call/page.ts";
import { buildSet, type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { matchAny, matchReference, type Where } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { buildJsonSql } from "../db/json_projection.ts";
import { buildPrune } from "../db/retention.ts";

/** A subscription of a browser, as the service stores it. */
export interface NewDevice
  extends Pick<Device, "id" | "user_id" | "name" | "service" | "tell" | "created_at"> {
  login_id: string;
  endpoint: string;
  p256dh: string;
  auth: string;
  server_key: string;
}

const readLatestPush = (column: string, otherwise: string) =>
  `coalesce((select ${column} from device_push where device_id = device.id order by id desc limit 1), ${otherwise})`;

const DEVICE_JSON = buildJsonSql("device", deviceSchema, {
  user_name: "user.name",
  last_push_at: readLatestPush("created_at", "null"),
  last_push: readLatestPush("status", "''"),
  last_error: readLatestPush("error", "''"),
});

const FROM = "device join user on user.id = device.user_id";

/** Lists devices, newest first, of these users or with null of all. */
export function listDevices(
  db: Database,
  userIds: readonly string[] | null,
  { ref, ...page }: DeviceFilter,
): Promise<Listing<Device>> {
  const where: Where = { conditions: [], args: [] };
  if (ref !== undefined) matchReference("device")(where, ref);
  if (userIds !== null) matchAny("device.user_id")(where, userIds);
  return list(db, { table: "device", from: FROM, json: DEVICE_JSON, where }, page);
}

export function findDevice(
  db: Database,
  by: { id: string } | { endpoint: string },
): Promise<Pick<Device, "id" | "name" | "user_id" | "created_at"> | null> {
  const [column, value] = "id" in by ? ["id", by.id] : ["endpoint", by.endpoint];
  return db.first(`select id, name, user_id, created_at from device where ${column} = ?`, [value]);
}

/** Stores a device. Guarded: its login must exist, and its user must have fewer than `max` devices. A stored endpoint fails the batch. */
export function insertDevice({ tell, ...device }: NewDevice, max: number, now: number): Statement[] {
  return [
    ...insertGuarded("device", { ...device, tell: JSON.stringify(tell), updated_at: now }, {
      sql: `exists (select 1 from refresh_token where id = ?)
        and (select count(*) from device where user_id = ?) < ?`,
      args: [device.login_id, device.user_id, max],
    }),
    // The first device starts with the events from now on.
    {
      sql: `insert into setting (name, value)
        select 'device_cursor', coalesce(max(seq), 0) from journal where true
        on conflict (name) do nothing`,
      args: [],
    },
  ];
}

/** Replaces what a browser subscribed with, guarded by its login. */
export function updateDevice({ id, login_id, name, tell, ...keys }: NewDevice, now: number): Statement[] {
  const set = buildSet({
    ...{ login_id, name, tell: JSON.stringify(tell) },
    ...{ p256dh: keys.p256dh, auth: keys.auth, server_key: keys.server_key },
    ...{ failures: 0, retry_at: 0, updated_at: now },
  });
  return guard(
    `update device set ${set.sql} where id = ? and exists (select 1 from refresh_token where id = ?)`,
    [...set.args, id, login_id],
  );
}

/** Deletes a device, guarded by its existence. A trigger ends its waiting pushes. */
export function deleteDevice(id: string): Statement[] {
  return guard("delete from device where id = ?", [id]);
}

/** Returns whether a device exists, and whether one receives inbox items. */
export async function findWants(db: Database): Promise<{ any: boolean; needs_you: boolean }> {
  const row = await db.first<{ rows: number; needs_you: number }>(
    "select count(*) as rows, coalesce(max(tell ->> '$.needs_you'), 0) as needs_you from device",
  );
  return { any: (row?.rows ?? 0) > 0, needs_you: row?.needs_you === 1 };
}

/** Forgets what devices know, if there is no device. */
export function forgetDeviceState(): Statement {
  return {
    sql:
      "delete from setting where name in ('device_cursor', 'device_inbox') and not exists (select 1 from device)",
    args: [],
  };
}

/** Lists the devices that receive inbox items. */
export function listInboxDevices(db: Database): Promise<{ id: string; created_at: number }[]> {
  return db.read("select id, created_at from device where tell ->> '$.needs_you' = 1 order by id");
}

/** Lists the devices of the users who asked for these runs, once per run. Runs of schedules have no such user. */
export function listFinishedDevices(
  db: Database,
  executionIds: readonly string[],
): Promise<{ id: string; execution_id: string }[]> {
  return db.read(
    `select device.id, asked.execution_id
    from (
      select execution.id as execution_id,
        iif(task.created_by = 'bee', inbound_message.sender, task.created_by) as asker
      from json_each(?)
      join execution on execution.id = value
      join task on task.id = execution.task_id
      left join inbound_message on inbound_message.id = execution.message_id and platform = 'local'
      where task.type <> 'scheduled') as asked
    join user on 'user:' || user.name = asked.asker
    join device on device.user_id = user.id
    where device.tell ->> '$.finished' = 1
    order by asked.execution_id`,
    [JSON.stringify(executionIds)],
  );
}

interface NewPush {
  id: string;
  device_id: string;
  kind: string;
  item_id: string;
  items: number;
}

/** Stores a push to a device that still exists. A push beyond the limit of waiting ones is skipped. */
export function insertPush({ id, device_id, kind, item_id, items }: NewPush, now: number): Statement {
  return {
    sql: `insert into device_push (id, device_id, kind, item_id, items, status, error, created_at)
      select ?, id, ?, ?, ?, iif(is_full, 'skipped', 'waiting'),
        iif(is_full, '${DEVICE_PUSHES_WAITING_MAX} pushes wait for this device', ''), ?
      from (
        select id, (select count(*) from device_push where device_id = device.id and status = 'waiting')
          >= ${DEVICE_PUSHES_WAITING_MAX} as is_full
        from device
        where id = ?)`,
    args: [id, kind, item_id, items, now, device_id],
    wakeup: WAKEUP.device,
  };
}

/** The oldest waiting push of a device, with all that its delivery needs. */
export interface DuePush extends NewPush {
  attempt: number;
  created_at: number;
  name: string;
  endpoint: string;
  p256dh: string;
  auth: string;
  server_key: string;
  /** JSON text. */
  tell: string;
  failures: number;
  user_id: string;
  role: Role;
  /** 1: the login of the device has ended. */
  is_ended: number;
}

/** Lists the oldest waiting push of each device that is not in a pause. */
export function listDuePushes(db: Database, now: number): Promise<DuePush[]> {
  return db.read<DuePush>(
    `select min(device_push.id) as id, device_push.device_id, device_push.kind, item_id, items, attempt,
      device_push.created_at, device.name, endpoint, p256dh, auth, server_key, tell, failures, device.user_id,
      user.role,
      user.disabled = 1 or refresh_token.expires_at <= ? or refresh_token.version <> iif(user.origin = 'operator',
        (select version from credential limit 1), user.version) as is_ended
    from device_push indexed by device_push_waiting
    join device on device.id = device_push.device_id
    join user on user.id = device.user_id
    join refresh_token on refresh_token.id = device.login_id
    where device_push.status = 'waiting' and retry_at <= ?
    group by device_push.device_id`,
    [now, now],
  );
}

/** Returns the next end of a pause of a device with waiting pushes, or null. */
export function findNextRetryAt(db: Database): Promise<number | null> {
  return db.readValue<number>(
    `select min(retry_at)
    from device_push indexed by device_push_waiting
    join device on device.id = device_push.device_id
    where device_push.status = 'waiting' and retry_at > 0`,
  );
}

interface PushEnd {
  status: "sent" | "failed" | "skipped";
  response: number;
  error: string;
}

/** Stores the outcome of a push. Guarded by the push waiting, so that a removed device keeps its outcome. */
export function endPush({ id, attempt }: DuePush, end: PushEnd, now: number): Statement[] {
  const tried = attempt + (end.status === "skipped" ? 0 : 1);
  return guard(
    `update device_push
    set status = ?, response = ?, error = ?, attempt = ?, ended_at = ?
    where id = ? and status = 'waiting'`,
    [end.status, end.response, end.error, tried, now, id],
  );
}

/** Stores a try without an outcome. Guarded by the push waiting. */
export function postponePush(push: DuePush, { response, error }: Omit<PushEnd, "status">): Statement[] {
  return guard(
    "update device_push set attempt = ?, response = ?, error = ? where id = ? and status = 'waiting'",
    [push.attempt + 1, response, error, push.id],
  );
}

/** Sets the pause of a device after a try. */
export function storePause(deviceId: string, failures: number, retryAt: number): Statement {
  return {
    sql: "update device set failures = ?, retry_at = ? where id = ?",
    args: [failures, retryAt, deviceId],
  };
}

export const prunePushes = buildPrune("device_push", "created_at < ? and status <> 'waiting'");
