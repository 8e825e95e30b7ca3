// Copies the scripts of the project into the build: the port runs the very same files.
import { cpSync } from "node:fs";

cpSync(new URL("../../../../redisq/lua", import.meta.url), new URL("../dist/lua", import.meta.url), { recursive: true });
