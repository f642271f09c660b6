import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import type { Platform } from "./platform.ts";

/** Size limits of one message. */
export interface Limits {
  /** Below the limit of the platform, since marks need some characters. */
  characters: number;
  /** 0: the platform takes no files. */
  fileBytes: number;
}

/** Arguments that every kind of platform gets. */
export interface PlatformBase<L extends Limits | null = Limits> {
  name: string;
  kind: string;
  limits: L;
  clock: Clock;
  /** The gateway that the settings name. */
  gateway: GatewayAccess | null;
}

/** A gateway for requests of the service itself. */
export interface GatewayAccess {
  upstream: URL;
  /** Reads the secret each time, so that a new one counts immediately. Throws an Error with the way out. */
  readHeader: () => Promise<{ name: string; value: string }>;
}

interface Definition<Settings extends z.ZodType, L extends Limits | null> {
  kind: string;
  /** Schema of an entry under `platforms:` in the configuration. */
  settings: Settings;
  /** Settings that `svc ctl config` hides. Each has a `<name>_file` next to it. */
  secrets: readonly string[];
  /** How to set it up: its name for people, the steps before its lines, and these lines of the configuration. */
  guide: { title: string; steps: readonly string[]; lines: readonly string[] };
  /** null: the service does not cut replies. */
  limits: L;
  /** Loads the code of the kind. */
  load(): Promise<(base: PlatformBase<L>, settings: z.output<Settings>) => Platform>;
}

/** Describes a kind of platform. Loads the code of the kind only with create() (decision 0005). */
export interface Manifest<Settings extends z.ZodType = z.ZodType, L extends Limits | null = Limits | null>
  extends Omit<Definition<Settings, L>, "load"> {
  /** Creates a platform without connecting it. `settings` must come from the schema of this manifest. */
  create(name: string, settings: object, clock: Clock, gateway?: GatewayAccess | null): Promise<Platform>;
}

export function defineManifest<Settings extends z.ZodType, L extends Limits | null>(
  { load, ...described }: Definition<Settings, L>,
): Manifest<Settings, L> {
  return {
    ...described,
    async create(name, settings, clock, gateway = null) {
      const create = await load();
      const { kind, limits } = described;
      return create({ name, kind, limits, clock, gateway }, settings as z.output<Settings>);
    },
  };
}

export const WEBHOOK_KEY_ERROR =
  "must be whsec_ and at least 24 bytes in base64. Create one with: echo whsec_$(openssl rand -base64 32)";

export const address = z.string().refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), {
  error: "must be an address such as https://example.org/hook",
});

export const optionalAddress = z.union([z.literal(""), address]).default("");

/** Settings of every kind of platform. */
export const commonSettings = {
  enabled: z.boolean().default(true),
  allow: z.array(z.union([z.string(), z.number()])).default([]),
  groups: z.enum(["mention", "all", "off"]).default("mention"),
  worker: z.string().default(""),
  base_url: optionalAddress,
  threads: z.enum(["session", "chat"]).default("session"),
};
