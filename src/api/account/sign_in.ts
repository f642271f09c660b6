import type { Clock } from "../../base/clock.ts";
import { type OidcConfig, OidcSignIn } from "./oidc.ts";
import { OneTimeCodes } from "./one_time_codes.ts";

/** What signing in needs beside passwords (contract 9). Made once at the start. */
interface SignIn {
  codes: OneTimeCodes;
  /** Null while no OpenID provider is configured. */
  oidc: OidcSignIn | null;
  /** Where people reach this service: `server.public_url`, else where it listens. */
  publicUrl: () => string;
  /** Ends the names of our cookies: cookies do not know ports, and two services may share a host. */
  cookieSuffix: string;
}

/** The dependency of operations that sign a person in. */
export interface SignInDeps {
  signIn: SignIn;
}

/** What it is made of. */
interface SignInOptions {
  oidc: OidcConfig;
  key: () => Uint8Array;
  clock: Clock;
  /** Random, and for ever the same of one database. */
  operatorId: string;
  /** `server.public_url`, and where the service listens. */
  publicUrl: string;
  listensAt: () => string;
}

/** Makes what signing in needs; no provider is asked before somebody signs in. */
export function createSignIn({ oidc, key, clock, operatorId, publicUrl, listensAt }: SignInOptions): SignIn {
  return {
    codes: new OneTimeCodes(clock),
    oidc: oidc.issuer === "" ? null : new OidcSignIn(oidc, key, clock),
    publicUrl: () => publicUrl.replace(/\/$/, "") || listensAt(),
    cookieSuffix: operatorId.slice(-8),
  };
}
