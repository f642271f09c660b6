import { isLoopback } from "../../base/address.ts";
import { createId } from "../../base/id.ts";
import { conflict, invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import type { DeleteResult } from "../../domain/call/deleted.ts";
import {
  type Device,
  type DeviceCreate,
  type DeviceFilter,
  DEVICES_PER_USER_MAX,
  type PushKey,
} from "../../domain/account/device.ts";
import { mayCall, type Person } from "../../domain/call/scope.ts";
import { encryptPush } from "../../platform/push_encryption.ts";
import { deriveVapidKey } from "../../platform/vapid.ts";
import {
  deleteDevice as deleteDeviceRow,
  findDevice,
  insertDevice,
  listDevices as listDeviceRows,
  type NewDevice,
  updateDevice,
} from "../../store/account/device.ts";
import { findUser } from "../../store/account/user.ts";
import { type Answer, answer, answerPage, DELETED } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import { type Creation, RaceError } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";
import type { SignInDeps } from "./sign_in.ts";

type DeviceDeps = Deps<"db" | "clock" | "authority" | "push"> & SignInDeps;

/** Returns the key for subscriptions. Throws `conflict` while browsers would not accept this service's address. */
export async function getPushKey({ authority, signIn }: DeviceDeps): Promise<Answer<PushKey>> {
  checkAddress(signIn.publicUrl());
  return answer({ public_key: (await deriveVapidKey(authority.key)).publicKey });
}

/** Lists the caller's devices, and with `write:users` those of all users. An unknown user in the filter matches no device. */
export async function listDevices({ db }: Deps<"db">, call: Call, filter: DeviceFilter) {
  const { userId } = requirePerson(call);
  const all = seesAll(call);
  if (filter.user === undefined) return answerPage(await listDeviceRows(db, all ? null : [userId], filter));
  const owners = await Promise.all([...new Set(filter.user)].map((user) => findUser(db, user)));
  const ids = owners.flatMap((owner) => owner !== null && (owner.id === userId || all) ? [owner.id] : []);
  return answerPage(await listDeviceRows(db, ids.length === 0 ? [""] : ids, filter));
}

/**
 * Stores the subscription of a browser. One that exists gets the new settings, and another user's moves to the caller, who uses
 * the browser now. Throws `forbidden` without a login, `invalid_request`, or `conflict`.
 */
export async function planDevice(
  { db, clock, authority, push, signIn }: DeviceDeps,
  call: Call,
  input: DeviceCreate,
): Promise<Creation<Device>> {
  const { userId, name: userName, loginId } = requirePerson(call);
  if (loginId === undefined) {
    throw new ServiceError(
      "forbidden",
      "Cannot add a device: it ends with a login, and this token has none. Turn notifications on in the console of the device.",
    );
  }
  checkAddress(signIn.publicUrl());
  const { endpoint, keys, tell } = input;
  const url = new URL(endpoint);
  if (url.protocol !== "https:" && !push.allow_private) throw invalid("endpoint", "must start with https://");
  await encryptPush("", keys).catch(() => {
    throw invalid("keys.p256dh", "must be a point on the curve P-256");
  });
  const now = clock.now();
  const known = await findDevice(db, { endpoint });
  const own = known?.user_id === userId ? known : null;
  const device: NewDevice = {
    id: own?.id ?? createId(),
    user_id: userId,
    login_id: loginId,
    name: input.name ?? own?.name ?? url.host,
    ...{ endpoint, service: url.host, ...keys, tell },
    server_key: (await deriveVapidKey(authority.key)).publicKey,
    created_at: own?.created_at ?? now,
  };
  const data = { device_id: device.id, name: device.name, user_id: userId };
  return {
    statements: [
      ...(known === null || own !== null ? [] : deleteDeviceRow(known.id)),
      ...(own === null ? insertDevice(device, DEVICES_PER_USER_MAX, now) : updateDevice(device, now)),
      recordBy(call, now, { kind: own === null ? "device.created" : "device.updated", data }),
    ],
    response: {
      ...{ id: device.id, user_id: userId, user_name: userName, name: device.name, service: device.service },
      ...{ tell, created_at: device.created_at, last_push_at: null, last_push: "", last_error: "" },
    },
    lost: () =>
      conflict(
        `Cannot add the device: its login has ended, or the user has ${DEVICES_PER_USER_MAX} devices. Log in again, or delete some devices.`,
      ),
    duplicate: () => new RaceError("conflict", "Cannot add the device: another request added it. Try again."),
  };
}

/** Deletes a device, which receives nothing from now on. Throws `not_found`, also for another user's device without `write:users`. */
export async function deleteDevice(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  id: string,
): Promise<Answer<DeleteResult>> {
  const { userId } = requirePerson(call);
  const device = await findDevice(db, { id });
  if (device === null || !seesAll(call) && device.user_id !== userId) throw notFound("device", id);
  const { name, user_id } = device;
  await db.writeOr([
    ...deleteDeviceRow(id),
    recordBy(call, clock.now(), { kind: "device.deleted", data: { device_id: id, name, user_id } }),
  ], () => notFound("device", id));
  return DELETED;
}

// Browsers subscribe only on pages of a secure context.
function checkAddress(publicUrl: string): void {
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol === "https:" || isLoopback(hostname)) return;
  throw conflict(
    `Cannot send notifications to devices: browsers accept them from https only, and this service is at ${publicUrl}. Set server.public_url to its https address.`,
  );
}

function seesAll({ caller }: Call): boolean {
  return mayCall(caller, "write:users");
}

function requirePerson({ caller: { person } }: Call): Person {
  if (person === null) throw new ServiceError("forbidden", "Cannot use devices: only people have them");
  return person;
}
