import { z } from "zod";
import type { AnyAdapter } from "../engine/protocol/adapter.ts";
import type { EngineConfig } from "../engine/config.ts";
import { GATEWAY_KINDS } from "../domain/call/vocabulary.ts";
import { findGatewayProblem, GATEWAY_NAME, type GatewayConfig } from "../domain/workers/gateway.ts";
import { ConfigError, type ConfigSource } from "./file.ts";
import { formatPosition } from "./problem.ts";

const gatewaySchema = z.strictObject({
  kind: z.enum(GATEWAY_KINDS),
  secret: z.string().regex(GATEWAY_NAME, {
    error: "must be the name of a secret, such as claude-key (svc ctl secret list)",
  }),
  upstream: z.string().default(""),
  header: z.string().default(""),
  allow: z.array(z.string()).default([]),
}) satisfies z.ZodType<GatewayConfig>;

export const gatewaysSchema = z.record(z.string(), gatewaySchema).default({});

type Gateways = z.output<typeof gatewaysSchema>;

/** Checks names, addresses, headers and rules. Throws ConfigError. */
export function checkGateways(gateways: Gateways, source: ConfigSource): void {
  for (const [name, gateway] of Object.entries(gateways)) {
    const fail = (key: string, text: string) => {
      const path = ["gateways", name, ...(key === "" ? [] : [key])];
      throw new ConfigError(`${formatPosition(source, path)}${path.join(".")}: ${text}`);
    };
    if (!GATEWAY_NAME.test(name)) fail("", "a gateway's name must be lower-case letters, digits, - and _");
    const problem = findGatewayProblem(gateway);
    if (problem !== null) fail(problem.key, problem.text);
  }
}

/** Checks the gateway that a platform names. Throws ConfigError. */
export function checkPlatformGateway(
  name: string,
  platform: object,
  gateways: Gateways,
  source: ConfigSource,
): void {
  const wanted = "gateway" in platform ? String(platform.gateway) : "";
  const gateway = Object.hasOwn(gateways, wanted) ? gateways[wanted] : undefined;
  if (wanted === "" || gateway?.kind === "http") return;
  const path = ["platforms", name, "gateway"];
  const problem = gateway === undefined
    ? `no gateway is called ${JSON.stringify(wanted)}`
    : `needs a gateway of kind http, and ${wanted} has kind ${gateway.kind}`;
  throw new ConfigError(`${formatPosition(source, path)}${path.join(".")}: ${problem}`);
}

interface NamedEngine {
  name: string;
  engine: EngineConfig;
  adapter: AnyAdapter;
}

/** Checks the gateway of an engine. Throws ConfigError. */
export function checkEngineGateway(
  { name, engine, adapter }: NamedEngine,
  gateways: Gateways,
  source: ConfigSource,
): void {
  const { gateway: wanted } = engine;
  if (wanted === undefined) return;
  const fail = (key: string, text: string) => {
    throw new ConfigError(
      `${formatPosition(source, ["engines", name, key])}engines.${name}.${key}: ${text}`,
    );
  };
  const gateway = Object.hasOwn(gateways, wanted) ? gateways[wanted] : undefined;
  if (gateway === undefined) {
    const known = Object.keys(gateways).sort().join(", ") || "none";
    return fail("gateway", `no gateway is called ${JSON.stringify(wanted)}. Known gateways: ${known}.`);
  }
  const kinds = adapter.driver === "agent" ? adapter.gateways ?? [] : [];
  if (!kinds.includes(gateway.kind)) {
    return fail(
      "gateway",
      kinds.length === 0
        ? `${adapter.kind} has no setting for a gateway. Name the gateway in the workers instead.`
        : `${adapter.kind} needs a gateway of kind ${
          kinds.join(" or ")
        }, and ${wanted} has kind ${gateway.kind}`,
    );
  }
  // Otherwise the run would hold the key that the gateway keeps away from it.
  const logins = adapter.driver === "agent" ? adapter.login.variables : [];
  const isLogin = (variable: string) => logins.includes(variable);
  const login = Object.entries(engine.env).find(([variable, value]) =>
    isLogin(variable) && !value.trimStart().startsWith("{")
  );
  if (login !== undefined) fail("env", `cannot contain ${login[0]}: the gateway ${wanted} has the key`);
  const passed = engine.pass_env.find(isLogin);
  if (passed !== undefined) fail("pass_env", `cannot contain ${passed}: the gateway ${wanted} has the key`);
}
