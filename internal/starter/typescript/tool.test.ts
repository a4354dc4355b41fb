import assert from "node:assert/strict";
import { test } from "node:test";
import { weather } from "./tool.js";

test("a city that has a station", () => assert.deepEqual(weather({ name: "Tokyo" }), { city: "Tokyo", temp: 21.5 }));
test("a city that has none", () => assert.throws(() => weather({ name: "Atlantis" }), /there is no station in Atlantis/));
