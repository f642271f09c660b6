import { z } from "zod";
import { isWithin } from "../../base/paths.ts";
import { text } from "../call/field.ts";

export const PATH_MAX_BYTES = 4_000;
/** Limits of a box's lists. */
const BOX_PATHS_MAX = 20;
const BOX_HOSTS_MAX = 100;

const path = text(PATH_MAX_BYTES).refine((value) => value.startsWith("/"), {
  error: "must be an absolute path",
});
const paths = z.array(path).max(BOX_PATHS_MAX);
/** Format of an amount of memory: bytes, or 512M. */
export const MEMORY = /^[1-9]\d{0,15}[KMGT]?$/;
const host = z.string().max(253).regex(/^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, {
  error: "must be a host name such as api.example.org, or *.example.org for all names below it",
});

/** The network of a box: the machine's, none, or the named hosts. */
const boxNetworkSchema = z.union([z.enum(["host", "none"]), z.array(host).max(BOX_HOSTS_MAX)]);
export type BoxNetwork = z.output<typeof boxNetworkSchema>;

/** Limits of the processes in a box. They need control groups that systemd delegates to the service. */
const limits = {
  memory: z.string().regex(MEMORY, { error: "must be bytes, such as 2G or 512M" }),
  pids: z.int().min(1).max(4_194_304),
  cpu: z.number().positive().max(1_024).meta({ description: "processors, such as 0.5 or 2" }),
};
const boxLimitsSchema = z.strictObject(limits).partial();
export type BoxLimits = z.output<typeof boxLimitsSchema>;

const boxOptionsSchema = z.strictObject({
  network: boxNetworkSchema,
  read: paths.meta({ description: "more paths that its runs can read" }),
  write: paths.meta({ description: "more paths that its runs can change" }),
  ...limits,
}).partial();
export type BoxOptions = z.output<typeof boxOptionsSchema>;

/** How the runs of a worker are isolated: in a pid namespace of the service's user, or in a box. */
export const isolationSchema = z.union(
  [z.enum(["namespace", "box"]), z.strictObject({ box: boxOptionsSchema })],
  { error: ({ input, errors }) => describeIsolationFault(input, errors?.at(-1)?.[0]) },
);
export type WorkerIsolation = z.output<typeof isolationSchema>;

/** The key `isolation` of the configuration: the default, and the bounds of every box. */
export const isolationConfigSchema = z.strictObject({
  default: z.enum(["namespace", "box"]).default("namespace"),
  box: z.strictObject({
    read: paths.default([]),
    write: paths.default([]),
    network: boxNetworkSchema.optional(),
    max_network: boxNetworkSchema.default("host"),
    user: z.string().max(64).default(""),
    total: boxLimitsSchema.default({}),
  }).prefault({}),
});
export type IsolationConfig = z.output<typeof isolationConfigSchema>;

/** Returns the options of a worker's box, or null for a worker without one. */
export function resolveBox(own: WorkerIsolation | null, config: IsolationConfig): BoxOptions | null {
  const wanted = own ?? config.default;
  if (wanted === "namespace") return null;
  return wanted === "box" ? {} : wanted.box;
}

/** Returns which option exceeds the bounds of the configuration, and why, or null. */
export function findExcess(
  { read = [], write = [], network }: BoxOptions,
  { box }: IsolationConfig,
): { option: keyof BoxOptions; reason: string } | null {
  const isAllowed = (one: string, bounds: readonly string[]) => bounds.some((bound) => isWithin(one, bound));
  const unread = read.find((one) => !isAllowed(one, [...box.read, ...box.write]));
  if (unread !== undefined) return { option: "read", reason: `${unread} is not in isolation.box.read` };
  const unwritten = write.find((one) => !isAllowed(one, box.write));
  if (unwritten !== undefined) {
    return { option: "write", reason: `${unwritten} is not in isolation.box.write` };
  }
  if (network === undefined || isNetworkWithin(network, box.max_network)) return null;
  return { option: "network", reason: "is more than isolation.box.max_network allows" };
}

/**
 * Returns the network of a box: the worker's, else the configuration's, else the hosts of the engine's provider, as far as
 * `isolation.box.max_network` allows them.
 */
export function resolveNetwork(
  { network }: BoxOptions,
  { box }: IsolationConfig,
  provider: readonly string[],
): BoxNetwork {
  if (network !== undefined) return network;
  return narrowNetwork(box.network ?? [...provider], box.max_network);
}

/** Returns what a bound leaves of a network. */
function narrowNetwork(wanted: BoxNetwork, bound: BoxNetwork): BoxNetwork {
  if (isNetworkWithin(wanted, bound)) return wanted;
  if (wanted === "host" || wanted === "none") return bound;
  return wanted.filter((name) => isNetworkWithin([name], bound));
}

/** The isolation that the service asks of a runner: the worker's, and the service's own network for boxes. */
export const remoteIsolationSchema = z.strictObject({
  box: boxOptionsSchema.nullable().meta({
    description:
      "null: none is needed; a runner that cannot set up a box must not start a run that needs one",
  }),
  network: boxNetworkSchema.nullable().meta({ description: "network of a box that names none, or null" }),
  max_network: boxNetworkSchema,
  hidden: z.array(z.string()).meta({ description: "work directories of other workers on runners" }),
});
export type RemoteIsolation = z.output<typeof remoteIsolationSchema>;

/**
 * Returns the box of a run on a runner and the bounds for it: what the service asks, within the runner's own bounds. Null for a run without a
 * box, which both have to allow.
 */
export function resolveRemoteBox(
  wanted: RemoteIsolation,
  config: IsolationConfig,
): { box: BoxOptions; config: IsolationConfig } | null {
  if (wanted.box === null) return config.default === "box" ? { box: {}, config } : null;
  const max_network = narrowNetwork(wanted.max_network, config.box.max_network);
  const both = [config.box.network, wanted.network ?? undefined].filter((one) => one !== undefined);
  const network = both.length === 0 ? undefined : both.reduce((one, other) => narrowNetwork(one, other));
  const own = wanted.box.network;
  return {
    box: { ...wanted.box, ...(own === undefined ? {} : { network: narrowNetwork(own, max_network) }) },
    config: {
      ...config,
      box: { ...config.box, max_network, ...(network === undefined ? {} : { network }) },
    },
  };
}

function isNetworkWithin(network: BoxNetwork, bound: BoxNetwork): boolean {
  if (bound === "host" || network === "none") return true;
  if (bound === "none" || network === "host") return false;
  return network.every((name) =>
    bound.some((one) => one === name || (one.startsWith("*.") && name.endsWith(one.slice(1))))
  );
}

// Without this, zod says of a union only that its input is invalid.
function describeIsolationFault(input: unknown, fault: z.core.$ZodIssue | undefined): string {
  const at = fault?.path.join(".") ?? "";
  const isBox = typeof input === "object" && input !== null && at !== "";
  return isBox ? `${at} ${fault?.message}` : 'must be namespace, box or {"box": {...}}';
}
