import { Buffer } from "node:buffer";
import { createECDH } from "node:crypto";
import ece from "http_ece";
import { describe, expect, it } from "vitest";
import { encryptPush } from "../../../src/platform/push_encryption.ts";
import { deriveVapidKey } from "../../../src/platform/vapid.ts";

// The example of RFC 8291, appendix A.
const TEXT = "When I grow up, I want to be a watermelon";
const BROWSER = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
const SERVER = {
  d: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
  point: "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
  salt: "DGv6ra1nlYgDCS1FRnbzlw",
};
const ENCRYPTED =
  "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

async function importServerPair(): Promise<CryptoKeyPair> {
  const point = Buffer.from(SERVER.point, "base64url");
  const jwk = {
    kty: "EC",
    crv: "P-256",
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
  };
  const curve = { name: "ECDH", namedCurve: "P-256" };
  return {
    publicKey: await crypto.subtle.importKey("jwk", jwk, curve, true, []),
    privateKey: await crypto.subtle.importKey("jwk", { ...jwk, d: SERVER.d }, curve, false, ["deriveBits"]),
  };
}

describe("encryptPush()", () => {
  it("gives the bytes of the example of RFC 8291", async () => {
    const salt = Buffer.from(SERVER.salt, "base64url");
    const bytes = await encryptPush(TEXT, BROWSER, { salt, pair: await importServerPair() });
    expect(Buffer.from(bytes).toString("base64url")).toBe(ENCRYPTED);
  });

  it("gives other bytes each time, which only the browser of the subscription decrypts", async () => {
    const [own, other] = [createECDH("prime256v1"), createECDH("prime256v1")];
    const p256dh = own.generateKeys("base64url");
    other.generateKeys();
    const keys = { p256dh, auth: BROWSER.auth };
    const [one, two] = [await encryptPush("Grüße 🎉", keys), await encryptPush("Grüße 🎉", keys)];
    expect(Buffer.from(one).equals(two)).toBe(false);
    const decrypt = (privateKey: typeof own, body: Uint8Array) =>
      ece.decrypt(Buffer.from(body), { version: "aes128gcm", privateKey, authSecret: BROWSER.auth })
        .toString();
    expect([decrypt(own, one), decrypt(own, two)]).toEqual(["Grüße 🎉", "Grüße 🎉"]);
    expect(() => decrypt(other, one)).toThrow();
  });

  it("refuses a message that a push service need not accept, and a key that is no point on the curve", async () => {
    expect((await encryptPush("x".repeat(3_993), BROWSER)).length).toBe(4_096);
    await expect(encryptPush("x".repeat(3_994), BROWSER)).rejects.toThrow("too long");
    await expect(encryptPush("x", { ...BROWSER, p256dh: `BA${"A".repeat(85)}` })).rejects.toThrow();
  });
});

describe("deriveVapidKey()", () => {
  it("gives the same key for a signing key, and another one for another", async () => {
    const [one, two] = [new Uint8Array(48).fill(1), new Uint8Array(48).fill(2)];
    const keys = await Promise.all([one, Uint8Array.from(one), two].map(deriveVapidKey));
    const [first, again, other] = keys.map(({ publicKey }) => publicKey);
    expect(first).toBe(again);
    expect(first).not.toBe(other);
    expect(Buffer.from(first ?? "", "base64url").length).toBe(65);
    expect(keys.map(({ privateKey }) => privateKey.extractable)).toEqual([false, false, false]);
  });
});
