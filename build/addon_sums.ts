/**
 * SHA-256 of libSQL's addon by package and version. An addon is native code with all our rights: review a new version before
 * adding it here (reliability SUP-2).
 */
export const ADDON_SUMS: Record<string, string> = {
  "@libsql/linux-x64-gnu@0.5.29": "f6c322c857c99e43e13c31e7289044d4e0d64528bae4e23ae03f6524afe02d5e",
  "@libsql/linux-arm64-gnu@0.5.29": "712f59a8f50a2e537afb7cc1cd57013f29e6026f355a9a4bd4716c0eccbe48c5",
  "@libsql/darwin-x64@0.5.29": "f9351876c884c0fec20eccfb9ddbcdd753f3458f0ffc6757e3308fea37191bf3",
  "@libsql/darwin-arm64@0.5.29": "3fd9e58190311b5ee027c3e5452a6a410b31a5d610fd55853d797bb3c9f5db0c",
  "@libsql/win32-x64-msvc@0.5.29": "5d1de6b0e9b3f2b71d79f4c0f833cd345f7dbb0aa921a89a8ebf0a07571ddc9d",
};

/** Throws Error for an addon that was not reviewed. */
export function checkAddon(name: string, version: string, sha256: string): void {
  const known = ADDON_SUMS[`${name}@${version}`];
  if (known === sha256) return;
  throw new Error(
    known === undefined
      ? `Cannot build with ${name}@${version}: build/addon_sums.ts does not know it; its SHA-256 is ${sha256}`
      : `Cannot build with ${name}@${version}: its SHA-256 is ${sha256}, build/addon_sums.ts says ${known}`,
  );
}
