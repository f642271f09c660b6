import { expect, it } from "vitest";
import { GatewayKeys } from "../../src/engine/gateway_keys.ts";

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
