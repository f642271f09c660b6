// Checks the senders of mails by their headers. Needs no mail server.
import { describe, expect, it } from "vitest";
import { verifySender } from "../../../src/platform/email/authentication.ts";
import { findAutomatic } from "../../../src/platform/email/automatic.ts";
import { parseHeader } from "../../../src/platform/email/header.ts";
import { findThread, isOwnMail } from "../../../src/platform/email/thread.ts";

const MX = "mx.example.org";
const FROM = "From: Ada <ada@news.example.com>";
const read = (...lines: string[]) =>
  parseHeader(new TextEncoder().encode([...lines, "", "body"].join("\r\n"))) ?? [];
const verify = (lines: string[], aligned: string[] = []) =>
  verifySender(read(...lines), { trusted_authserv: MX, aligned });
const results = (text: string, from = FROM) => verify([`Authentication-Results: ${text}`, from]);
const isHeard = (found: ReturnType<typeof verify>) => typeof found !== "string";

describe("verifySender() [MAI-1]", () => {
  it("returns the address in lower case after a pass for its domain", () => {
    for (
      const text of [
        `${MX}; dmarc=pass header.from=news.example.com`,
        `${MX}; dmarc=pass (p=reject dis=none)`,
        `${MX}; dkim=fail header.d=other.test; dkim=pass header.d=news.example.com header.s=k`,
        `${MX}; dkim=pass header.d=News.Example.COM.`,
        `${MX} 1; spf=pass smtp.mailfrom=bounce@news.example.com`,
        `${MX}; spf=pass (sender IP is 192.0.2.1; really) smtp.mailfrom=news.example.com`,
        `"${MX}"; DKIM/1 = Pass reason="good; dkim=fail" header.d = "news.example.com"`,
        `MX.example.org;\r\n\tspf=neutral smtp.mailfrom=x@other.test;\r\n\tdmarc=pass header.from=news.example.com`,
      ]
    ) {
      expect([text, results(text, "From: =?utf-8?q?Ada?= <Ada@News.Example.com>")]).toEqual([
        text,
        { address: "ada@news.example.com", domain: "news.example.com", name: "=?utf-8?q?Ada?=" },
      ]);
    }
  });

  it("hears no mail without a pass for the domain of its From", () => {
    for (
      const text of [
        `${MX}; none`,
        `${MX}`,
        `${MX}; dmarc=fail header.from=news.example.com`,
        `${MX}; dmarc=pass header.from=other.test`,
        `${MX}; dkim=pass`,
        `${MX}; dkim=pass header.i=@news.example.com`,
        `${MX}; dkim=pass header.d=other.test`,
        `${MX}; dkim=pass header.d=example.com`,
        `${MX}; dkim=pass header.d=mail.news.example.com`,
        `${MX}; dkim=pass header.d=evilnews.example.com`,
        `${MX}; dkim=pass header.d=other.test header.d=news.example.com`,
        `${MX}; spf=pass smtp.helo=news.example.com`,
        `${MX}; spf=pass smtp.mailfrom="x smtp.mailfrom=news.example.com"@other.test`,
        `${MX}; spf=pass smtp.mailfrom="x; dmarc=pass"@other.test`,
        `${MX}; spf=fail (dmarc=pass header.from=news.example.com) smtp.mailfrom=x@other.test`,
        `${MX}; spf=fail (a (nested\\) ; dmarc=pass) b) smtp.mailfrom=x@other.test`,
        `${MX}; arc=pass header.from=news.example.com`,
        `other.test; dmarc=pass header.from=news.example.com`,
        `evil-${MX}; dmarc=pass header.from=news.example.com`,
        `(${MX}) other.test; dmarc=pass`,
        `; dmarc=pass header.from=news.example.com`,
      ]
    ) expect([text, isHeard(results(text))]).toEqual([text, false]);
  });

  it("takes the domain of a parent only when `aligned` names it", () => {
    const lines = [`Authentication-Results: ${MX}; dkim=pass header.d=example.com`, FROM];
    expect(isHeard(verify(lines, ["example.com"]))).toBe(true);
    expect(isHeard(verify(lines, ["news.example.com", "com", "example"]))).toBe(false);
    const child = [`Authentication-Results: ${MX}; dkim=pass header.d=a.news.example.com`, FROM];
    expect(isHeard(verify(child, ["a.news.example.com"]))).toBe(false);
  });

  it("reads the topmost Authentication-Results only, above every Received of another server", () => {
    const pass = `Authentication-Results: ${MX}; dmarc=pass header.from=news.example.com`;
    const own =
      `Received: from relay.test (relay.test [192.0.2.7])\r\n by ${MX} (Postfix) with ESMTPS id 1; Fri, 27 Nov 2026`;
    const below = `Received: from a by front.${MX} with LMTP; Fri, 27 Nov 2026`;
    const foreign = "Received: from a.test by relay.test with SMTP; Fri, 27 Nov 2026";
    expect(isHeard(verify([pass, own, foreign, FROM]))).toBe(true);
    expect(isHeard(verify([own, below, pass, foreign, FROM]))).toBe(true);
    expect(isHeard(verify([foreign, pass, FROM]))).toBe(false);
    expect(isHeard(verify([`Received: from b by evil${MX} with SMTP`, pass, FROM]))).toBe(false);
    expect(isHeard(verify([`Received: from by ${MX} by relay.test with SMTP`, pass, FROM]))).toBe(false);
    expect(isHeard(verify([`Received: from b (by ${MX}) by relay.test`, pass, FROM]))).toBe(false);
    expect(isHeard(verify(["Authentication-Results: other.test; none", pass, FROM]))).toBe(false);
    expect(isHeard(verify([`Authentication-Results: ${MX}; dmarc=fail`, pass, FROM]))).toBe(false);
    expect(isHeard(verify([FROM]))).toBe(false);
  });

  it("needs one From with one address that no two programs read differently", () => {
    const pass = `${MX}; dmarc=pass`;
    for (
      const from of [
        `${FROM}\r\n${FROM}`,
        `${FROM}\r\nFrom : eve@other.test`,
        `${FROM}\rfrom: eve@other.test`,
        "From: ada@news.example.com, eve@other.test",
        "From: ada@news.example.com <eve@other.test>",
        "From: Group: ada@news.example.com;",
        "From: <ada@news.example.com> <eve@other.test>",
        "From: ada@news.example.com (eve)",
        'From: "a b"@news.example.com',
        "From: ada@[192.0.2.1]",
        "From: ada@localhost",
        "From: <@relay.test:ada@news.example.com>",
        "From: Ada <>",
        "From:",
        "Sender: ada@news.example.com",
        `From: ${"a".repeat(2_000)}@news.example.com`,
      ]
    ) expect([from, isHeard(results(pass, from))]).toEqual([from, false]);
    expect(results(pass, 'From: "eve@other.test" <ada@news.example.com>')).toMatchObject({
      address: "ada@news.example.com",
    });
    expect(results(pass, "FROM:\r\n <ada@news.example.com>")).toMatchObject({
      address: "ada@news.example.com",
    });
  });
});

describe("findAutomatic() [MAI-1]", () => {
  it("finds bounces, automatic replies, bulk mail and lists", () => {
    for (
      const [line, found] of [
        ["Return-Path: <>", "a bounce"],
        ["Content-Type: multipart/report; report-type=delivery-status", "a bounce"],
        ["Auto-Submitted: auto-replied", "an automatic reply"],
        ["Auto-Submitted: auto-generated; owner-email=x", "an automatic reply"],
        ["X-Autoreply: yes", "an automatic reply"],
        ["Precedence: bulk", "bulk mail"],
        ["precedence: LIST", "bulk mail"],
        ["List-Id: <dev.example.org>", "mail of a list"],
        ["List-Unsubscribe: <mailto:x@example.org>", "mail of a list"],
        ["Mailing-List: contact x", "mail of a list"],
        ["Auto-Submitted: no", ""],
        ["Precedence: first-class", ""],
        ["Return-Path: <ada@example.org>", ""],
        ["Subject: Auto-Submitted: auto-replied", ""],
      ]
    ) expect([line, findAutomatic(read(line ?? ""))]).toEqual([line, found]);
  });
});

describe("findThread()", () => {
  const domain = "agents.test";
  const own = `svc.${"a".repeat(24)}.${"b".repeat(20)}`;
  const find = (...lines: string[]) => findThread(read(...lines), domain, "1-2");

  it("starts a thread with a mail, and finds it by its references", () => {
    const first = find("Message-ID: <m1@example.org>");
    expect(first).toMatchObject({
      repliesTo: "",
      isFirst: true,
      thread: expect.stringMatching(/^[0-9a-f]{20}$/),
    });
    const later = find(
      "Message-ID: <m3@x>",
      "In-Reply-To: <m2@x>",
      "References: <m1@example.org>\r\n <m2@x>",
    );
    expect(later).toEqual({ thread: first.thread, repliesTo: "", isFirst: false });
    expect(find("Subject: no id").thread).toBe(findThread([], domain, "1-2").thread);
  });

  it("finds the thread of the service's own mail", () => {
    const place = { thread: "b".repeat(20), isFirst: false };
    expect(find(`In-Reply-To: <${own}@Agents.test>`)).toEqual({ ...place, repliesTo: own });
    expect(find("In-Reply-To: <m9@x>", `References: <m1@x> <${own}@agents.test>`)).toEqual({
      ...place,
      repliesTo: "",
    });
    expect(find(`References: <svc.${"a".repeat(24)}.0@agents.test>`)).toMatchObject({
      thread: "",
      isFirst: false,
    });
    expect(find(`In-Reply-To: <${own}@other.test>`).thread).not.toBe(place.thread);
    expect(isOwnMail(read(`Message-ID: <${own}@agents.test>`), domain)).toBe(true);
    expect(isOwnMail(read(`Message-ID: <${own}@other.test>`), domain)).toBe(false);
  });
});

describe("parseHeader()", () => {
  it("returns null when the header does not end, and takes linear time", () => {
    expect(parseHeader(new TextEncoder().encode("From: ada@example.org\r\nTo: x\r\n"))).toBeNull();
    const started = performance.now();
    for (const fill of [" ", "(", '"', "<", ";", "=", "a@", "\t=", "\\", "[", "@", "by "]) {
      const long = fill.repeat(100_000);
      const names = [
        "Authentication-Results",
        "From",
        "Received",
        "References",
        "Message-ID",
        "Precedence",
        "Return-Path",
      ];
      const header = read(...names.map((name) => `${name}: ${long}`));
      verifySender(header, { trusted_authserv: MX, aligned: [] });
      verifySender(read(`Authentication-Results: ${MX}; ${long}`, FROM), {
        trusted_authserv: MX,
        aligned: [],
      });
      findAutomatic(header);
      findThread(header, "agents.test", "1");
    }
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
