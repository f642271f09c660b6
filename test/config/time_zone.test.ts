import { describe, expect, it } from "vitest";
import { machineTimeZone } from "../../src/config/time_zone.ts";
import { svc, tempDir } from "../harness/process.ts";

describe("the time zone of a service that has none configured (contract 7, reliability CRN-10)", () => {
  it.each([
    ["Europe/Berlin", "Europe/Berlin"],
    [":Asia/Kolkata", "Asia/Kolkata"],
    [":/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"],
    ["/usr/share/zoneinfo/posix/America/New_York", "America/New_York"],
    ["", "UTC"],
    ["UTC", "UTC"],
  ])("TZ=%j is %s", (tz, zone) => {
    expect(machineTimeZone(tz)).toBe(zone);
  });

  it.each(["Nonsense/Zone", "+05:30", "<+03>-3", ":/tmp/zone", "CST-8"])("TZ=%j is refused", (tz) => {
    expect(() => machineTimeZone(tz)).toThrow(
      `scheduler.time_zone: is not set, and TZ is ${JSON.stringify(tz)}; set it to one such as`,
    );
  });

  it("without TZ is the system's", () => {
    expect(() => new Intl.DateTimeFormat("en", { timeZone: machineTimeZone(undefined) })).not.toThrow();
  });

  it("a start in a zone that nobody knows is refused, before a password is made", async () => {
    await using folder = await tempDir();
    const ran = await svc(["serve"], { dataDir: folder.path, env: { TZ: "Nonsense/Zone" } });
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining("scheduler.time_zone: is not set")]);
    expect([...Deno.readDirSync(folder.path)]).toEqual([]);
  });
});
