// The key `engines` of a service and of a runner, which loads no other settings of a service.
import { z } from "zod";
import { APPROVAL_TIMEOUT_MAX_MS } from "../domain/work/approval.ts";
import type { EngineConfig } from "../engine/config.ts";
import {
  ADAPTERS,
  findAdapter,
  findAskFault,
  findReservedFlag,
  needsNoConfiguration,
} from "../engine/kinds.ts";
import type { AnyAdapter } from "../engine/protocol/adapter.ts";
import { ConfigError, type ConfigSource, resolveConfigPath } from "./file.ts";
import { checkEngineGateway, type gatewaysSchema } from "./gateway.ts";
import { formatPosition } from "./problem.ts";
import { buildCountSchema, buildDurationSchema, buildShareSchema, priceSchema } from "./value.ts";

const KINDS = ADAPTERS.map(({ kind }) => kind);

/** Engines that exist without configuration, named after their kind. */
export const ENGINES_DEFAULT: readonly string[] = ADAPTERS.filter(needsNoConfiguration).map(({ kind }) =>
  kind
);

export const engineSchema = z.strictObject({
  kind: z.enum(KINDS).optional(),
  command: z.string().default(""),
  args: z.array(z.string()).default([]),
  env: z.record(z.string(), z.string()).default({}),
  pass_env: z.array(z.string()).default([]),
  model: z.string().default(""),
  permissions: z.enum(["read", "edit", "ask", "full"]).default("edit"),
  ask_timeout: buildDurationSchema("15m", 1_000),
  state: z.enum(["per_worker", "shared"]).default("per_worker"),
  gateway: z.string().min(1).optional(),
  reserve: buildShareSchema("0%"),
  prices: z.strictObject({ input: priceSchema, output: priceSchema }).optional(),
  fallback: z.array(z.string()).default([]),
  fallback_after: buildDurationSchema("5m"),
  warm: z.strictObject({
    keep: buildDurationSchema("10m", 1_000),
    max: buildCountSchema(2, 0, 1_000),
    spare: z.int().min(0).max(1).optional(),
    max_turns: buildCountSchema(50, 1, 1_000_000),
    max_age: buildDurationSchema("6h", 1_000),
    max_rss_mb: buildCountSchema(1_024, 1, 1_048_576),
  }).optional(),
  timeout: buildDurationSchema("30m", 1),
  idle_timeout: buildDurationSchema("10m", 1),
  shell: z.array(z.string()).optional(),
}) satisfies z.ZodType<EngineConfig>;

export const enginesSchema = z.object({ default: z.string().min(1).default("echo") }).catchall(engineSchema)
  .prefault({});

/** Checks the engines and fills in kinds and commands. Throws ConfigError. `beeEngine` is the coordinator's engine, if any. */
export function checkEngines(
  given: z.output<typeof enginesSchema>,
  source: ConfigSource,
  { gateways = {}, beeEngine = "rules" }: { gateways?: z.output<typeof gatewaysSchema>; beeEngine?: string } =
    {},
): void {
  const { default: defaultName, ...engines } = given;
  const known = new Set(ENGINES_DEFAULT);
  for (const [name, engine] of Object.entries(engines)) {
    const at = `${formatPosition(source, ["engines", name])}engines.${name}`;
    if (!/^[a-z][a-z0-9_-]{0,63}$/.test(name)) {
      throw new ConfigError(`${at}: an engine's name must be lower-case letters, digits, - and _`);
    }
    const adapter = findAdapter(engine.kind ?? name);
    if (adapter === undefined) {
      throw new ConfigError(`${at}.kind: is required. Use one of ${KINDS.join(", ")}.`);
    }
    const { kind, program } = adapter;
    if (program === "" && engine.command === "") {
      throw new ConfigError(`${at}.command: is required. Name the worker's program.`);
    }
    const flag = findReservedFlag(kind, engine.args);
    if (flag !== null) {
      const position = formatPosition(source, ["engines", name, "args"]);
      throw new ConfigError(`${position}engines.${name}.args: cannot contain ${flag}: the service sets it`);
    }
    const canStay = adapter.driver === "agent" && adapter.open !== undefined;
    if (engine.warm !== undefined && engine.warm.max > 0 && !canStay) {
      throw new ConfigError(
        `${
          formatPosition(source, ["engines", name, "warm"])
        }engines.${name}.warm: ${kind} ends after each turn. Remove this key.`,
      );
    }
    if (engine.fallback.includes(name)) {
      const position = formatPosition(source, ["engines", name, "fallback"]);
      throw new ConfigError(`${position}engines.${name}.fallback: cannot contain ${name} itself`);
    }
    checkAsking({ name, engine, adapter }, source);
    checkEngineGateway({ name, engine, adapter }, gateways, source);
    if (engine.command.includes("/")) engine.command = resolveConfigPath(source.base, engine.command);
    engine.kind = kind;
    known.add(name);
  }
  const references = [
    ["engines.default", defaultName],
    ["bee.engine", beeEngine],
    ...Object.entries(engines).flatMap(([engine, { fallback }]) =>
      fallback.map((name) => [`engines.${engine}.fallback`, name] as const)
    ),
  ] as const;
  for (const [key, name] of references) {
    if (known.has(name) || (key === "bee.engine" && name === "rules")) continue;
    const names = [...known].sort().join(", ");
    throw new ConfigError(
      `${formatPosition(source, key.split("."))}${key}: no engine is called ${
        JSON.stringify(name)
      }. Known engines: ${names}.`,
    );
  }
}

const ASKING_KINDS = ADAPTERS.filter((adapter) => adapter.driver === "agent" && adapter.asks === true).map((
  one,
) => one.kind);

function checkAsking(
  { name, engine, adapter }: { name: string; engine: EngineConfig; adapter: AnyAdapter },
  source: ConfigSource,
): void {
  if (engine.ask_timeout > APPROVAL_TIMEOUT_MAX_MS) {
    throw new ConfigError(
      `${
        formatPosition(source, ["engines", name, "ask_timeout"])
      }engines.${name}.ask_timeout: must be at most 7d`,
    );
  }
  if (engine.permissions !== "ask") return;
  const key = adapter.driver !== "agent" || adapter.asks !== true ? "permissions" : "args";
  const fault = key === "permissions"
    ? `${adapter.kind} cannot ask a person about a tool call. Use read, edit or full, or an engine of kind ${
      ASKING_KINDS.join(", ")
    }.`
    : findAskFault(adapter.kind, engine.args);
  if (fault === null) return;
  const position = formatPosition(source, ["engines", name, key]);
  throw new ConfigError(`${position}engines.${name}.${key}: ${fault}`);
}
