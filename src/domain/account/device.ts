import { z } from "zod";
import { id, line, parseTextList, refFilter, time } from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { DEVICE_PUSH_STATUSES } from "../call/vocabulary.ts";

export const DEVICES_PER_USER_MAX = 20;

/** Most pushes that wait for one device. Later ones are skipped. */
export const DEVICE_PUSHES_WAITING_MAX = 50;

const DEVICE_NAME_MAX_BYTES = 100;

/** Bytes of the keys of a subscription (RFC 8291). */
const POINT_BYTES = 65;
const AUTH_BYTES = 16;

const endpoint = line(2_000).refine((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ""), {
  error: "must be the https address of a push service",
}).refine((value) => !URL.parse(value)?.username && !URL.parse(value)?.password, {
  error: "must not contain a user name or a password",
});

const buildKeySchema = (bytes: number) =>
  line(200).refine(
    (value) => /^[\w-]+=*$/.test(value) && value.replace(/=+$/, "").length === Math.ceil(bytes * 4 / 3),
    { error: `must be ${bytes} bytes in base64url` },
  );

const tellSchema = z.strictObject({
  needs_you: z.boolean(),
  finished: z.boolean(),
  text: z.boolean(),
}).meta({ id: "DeviceTell" });

/** The messages that a device receives. All are off by default. */
const tellInput = z.strictObject({
  needs_you: z.boolean().default(false).meta({ description: "new items of the inbox" }),
  finished: z.boolean().default(false).meta({
    description: "runs that its user asked for and that completed",
  }),
  text: z.boolean().default(false).meta({
    description: "the message also contains the text of the question, the error or the result",
  }),
});

/** A browser that receives Web Push for its user (contract 32). */
export const deviceSchema = z.strictObject({
  id,
  user_id: id,
  user_name: z.string(),
  name: z.string(),
  service: z.string().meta({ description: "host of the push service" }),
  tell: tellSchema,
  created_at: time,
  last_push_at: time.nullable(),
  last_push: z.enum(["", ...DEVICE_PUSH_STATUSES]).meta({ description: "outcome of the latest push" }),
  last_error: z.string(),
}).meta({ id: "Device" });
export type Device = z.output<typeof deviceSchema>;

/** A `PushSubscription` as a browser serializes it, and the messages that the device receives. */
export const deviceCreateSchema = z.strictObject({
  endpoint,
  expirationTime: z.number().nullable().optional().meta({
    description: "accepted and not used: the push service says when the subscription has ended",
  }),
  keys: z.strictObject({ p256dh: buildKeySchema(POINT_BYTES), auth: buildKeySchema(AUTH_BYTES) }),
  tell: tellInput,
  name: line(DEVICE_NAME_MAX_BYTES).optional().meta({ description: "default: the host of the push service" }),
}).meta({
  id: "DeviceCreate",
  examples: [{
    endpoint: "https://push.example.org/send/abc",
    expirationTime: null,
    keys: {
      p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
      auth: "BTBZMqHH6r4Tts7J_aSIgg",
    },
    tell: { needs_you: true },
  }],
});
export type DeviceCreate = z.output<typeof deviceCreateSchema>;

export const deviceListQuery = {
  ref: refFilter.optional(),
  ...buildPageQuery(),
  user: parseTextList().optional().meta({
    type: "string",
    description: "ids or names of users; any of them matches",
  }),
};
export type DeviceFilter = z.output<z.ZodObject<typeof deviceListQuery>>;

export const pushKeySchema = z.strictObject({
  public_key: z.string().meta({ description: "the `applicationServerKey` of a subscription, in base64url" }),
}).meta({ id: "PushKey" });
export type PushKey = z.output<typeof pushKeySchema>;
