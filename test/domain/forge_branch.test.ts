import { expect, it } from "vitest";
import {
  chooseDestination,
  type ForgeChange,
  normalizeRepository,
  type PushedBranch,
} from "../../src/domain/work/forge_branch.ts";

const CHANGE: ForgeChange = {
  repository: "https://github.com/octo/hello",
  base: "octo/hello",
  head: "octo/hello",
  branch: "svc/ada/0af35b1c",
  commit: "ec26c3e5",
};
const PUSHED: PushedBranch = {
  repository: "git@github.com:octo/hello.git",
  branch: "svc/ada/0af35b1c",
  pushed_commit: "ec26c3e5",
  lane: "session:local:1",
  rounds: 0,
};

it("an event of a forge returns to the agent only for the commit that the service pushed, three times (contract 25) [FRG-1]", () => {
  const cases: [wanted: string, change: Partial<ForgeChange>, pushed: Partial<PushedBranch>][] = [
    ["branch", {}, {}],
    ["branch", {}, { repository: "https://GitHub.com/octo/hello" }],
    ["branch", {}, { rounds: 2 }],
    ["inbox", {}, { rounds: 3 }],
    ["inbox", {}, { rounds: 9 }],
    // A fork can have a branch of the same name with the same commit.
    ["forge", { head: "eve/hello" }, {}],
    ["forge", { head: "?" }, {}],
    ["forge", { head: "?", base: "?" }, { repository: "" }],
    ["forge", { repository: "https://github.com/eve/hello", base: "eve/hello", head: "eve/hello" }, {}],
    ["forge", { repository: "https://github.com.example.org/octo/hello" }, {}],
    ["forge", { repository: "" }, { repository: "" }],
    ["forge", {}, { repository: "/srv/octo/hello" }],
    ["forge", { branch: "main" }, {}],
    ["forge", { commit: "another" }, {}],
    ["forge", { commit: "" }, { pushed_commit: "" }],
    // A task with a separate branch has no conversation.
    ["forge", {}, { lane: "task:1" }],
  ];
  for (const [wanted, change, pushed] of cases) {
    const found = chooseDestination({ ...CHANGE, ...change }, { ...PUSHED, ...pushed }, 3);
    expect([wanted, change, pushed]).toEqual([found, change, pushed]);
  }
  expect(chooseDestination(CHANGE, PUSHED, 0)).toBe("inbox");
});

it("the addresses of one repository are equal, and those of others are not", () => {
  const same = [
    "https://h.org/a/b",
    "https://h.org/a/b.git",
    "ssh://git@h.org:2222/a/b.git",
    "git@h.org:a/b.git",
    "https://H.org/a/b/",
  ];
  expect(new Set(same.map(normalizeRepository))).toEqual(new Set(["h.org/a/b"]));
  for (
    const other of [
      "https://h.org:8443/a/b",
      "https://h.org/a/b/c",
      "https://h.org.evil/a/b",
      "http://127.0.0.1/a/b",
    ]
  ) {
    expect(normalizeRepository(other)).not.toBe("h.org/a/b");
  }
  for (const none of ["", "/a/b", "file:///a/b", "https://h.org", "text"]) {
    expect(normalizeRepository(none)).toBe("");
  }
});
