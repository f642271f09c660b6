import { z } from "zod";

export const deletedSchema = z.strictObject({ status: z.literal("deleted") }).meta({ id: "Deleted" });
export type DeleteResult = z.output<typeof deletedSchema>;
