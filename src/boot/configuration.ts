import type { Configuration } from "../api/call/services.ts";
import { load } from "../base/lazy_import.ts";
import type { LoadedConfig } from "../config/schema.ts";

/** Builds the view of the configuration for the API. Loads the YAML parser on demand, because a start without a file does not need it. */
export function createConfiguration(loaded: LoadedConfig): Configuration {
  return {
    async read() {
      const { listSettings } = await load<typeof import("../config/settings.ts")>(
        "../config/settings.ts",
        import.meta.url,
      );
      const { listGuides } = await load<typeof import("../config/guides.ts")>(
        "../config/guides.ts",
        import.meta.url,
      );
      return { path: loaded.path, settings: listSettings(loaded), guides: listGuides() };
    },
    async check(yaml) {
      const { checkSnippet } = await load<typeof import("../config/snippet.ts")>(
        "../config/snippet.ts",
        import.meta.url,
      );
      return checkSnippet(yaml, loaded);
    },
  };
}
