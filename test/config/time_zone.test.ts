import { describe, expect, it } from "vitest";
import { findMachineTimeZone } from "../../src/config/time_zone.ts";
import { createTempDir, svc } from "../harness/service/process.ts";

describe("the time zone of a service that has none configured (contract 7) [CRN-10]", () => {
  it.each([
    ["Europe/Berlin", "Europe/Berlin"],
    [":Asia/Kolkata", "Asia/Kolkata"],
    [":/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"],
    ["/usr/share/zoneinfo/posix/America/New_York", "America/New_York"],
    ["posix/Europe/Berlin", "Europe/Berlin"],
    ["europe/berlin", "Europe/Berlin"],
    ["", "UTC"],
    ["UTC0", "UTC"],
    ["UTC", "UTC"],
  ])("TZ=%j is %s", (tz, zone) => {
    expect(findMachineTimeZone(tz)).toBe(zone);
  });

  it.each(["Nonsense/Zone", "+05:30", "<+03>-3", ":/tmp/zone", "CST-8"])("TZ=%j is refused", (tz) => {
    expect(() => findMachineTimeZone(tz)).toThrow(
      `scheduler.time_zone: is not set, and TZ is ${JSON.stringify(tz)}. Set a time zone such as`,
    );
  });

  it("is the system's without TZ, and with a TZ that names the system's file", async () => {
    const link = await Deno.realPath("/etc/localtime");
    const place = /\/zoneinfo\/(.+)$/.exec(link)?.[1] ?? "UTC";
    const offset = (timeZone: string) =>
      new Date().toLocaleString("en", { timeZone, timeZoneName: "longOffset" });
    expect(offset(findMachineTimeZone(":/etc/localtime"))).toBe(offset(place));
    expect(offset(findMachineTimeZone(undefined))).toBe(offset(Deno.env.get("TZ") || place));
  });

  it("a start in an unknown zone fails before it generates a password [CRN-10]", async () => {
    await using folder = await createTempDir();
    const ran = await svc(["serve"], { dataDir: folder.path, env: { TZ: "Nonsense/Zone" } });
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining("scheduler.time_zone: is not set")]);
    expect([...Deno.readDirSync(folder.path)]).toEqual([]);
  });
});
