import { expect, it } from "vitest";
import { engineSchema } from "../../src/config/engine.ts";
import { buildAgentEngine } from "../../src/engine/agent.ts";
import { GatewayKeys } from "../../src/engine/gateway_keys.ts";
import { ADAPTERS } from "../../src/engine/kinds.ts";
import { MACHINE } from "../harness/fakes/fake_service.ts";

it("GatewayKeys: a key represents the token of its current run, and nothing between runs", () => {
  const keys = new GatewayKeys();
  const key = keys.create();
  expect(keys.create()).not.toBe(key);
  expect(keys.resolve(key)).toBeNull();
  keys.assign(key, "first");
  expect(keys.resolve(key)).toBe("first");
  keys.assign(key, "second");
  expect(keys.resolve(key)).toBe("second");
  keys.revoke(key);
  expect(keys.resolve(key)).toBeNull();
  expect(keys.resolve("a token")).toBe("a token");
});

const BEHIND = ADAPTERS.filter((adapter) => adapter.driver === "agent").filter(({ gateways = [] }) =>
  gateways.length > 0
);

it.each(BEHIND)("a run of $kind behind a gateway inherits no login of the provider", (adapter) => {
  const { kind, gateways: [usual] = [], login } = adapter;
  const build = (gateway?: string) =>
    buildAgentEngine(
      kind,
      engineSchema.parse({ kind, pass_env: ["OWN_TOKEN"], gateway }),
      { ...MACHINE, gateways: usual === undefined ? {} : { model: usual } },
      adapter,
    ).inheritedVariables;
  expect(build()).toEqual(expect.arrayContaining([...login.variables, "OWN_TOKEN"]));
  const inherited = build("model");
  expect(inherited.filter((name) => login.variables.includes(name))).toEqual([]);
  // The operator named this one.
  expect(inherited.filter((name) => /_(KEY|TOKEN)$/.test(name))).toEqual(["OWN_TOKEN"]);
});
