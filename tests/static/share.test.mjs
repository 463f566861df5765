import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, hiddenParts } from "../../static/share.js";

test("only an embedded page leaves out anything", () => {
  assert.equal(hiddenParts(""), null);
  assert.equal(hiddenParts("?hide=runs"), null);
  assert.equal(hiddenParts("?embed=yes&hide=runs"), null);
  assert.deepEqual(hiddenParts("?embed=1"), []);
});

test("names that there are not are passed over", () => {
  const query = "?embed=1&hide=runs,%3Cscript%3E,settings,%20legend%20,__proto__,body";
  assert.deepEqual(hiddenParts(query), ["settings", "legend", "runs"]);
});

test("an address is the page's own, whatever it was opened with", () => {
  const page = { origin: "https://example.org", pathname: "/unmask/", search: "?embed=1" };
  assert.equal(addressOf("run=a1", page), "https://example.org/unmask/?run=a1");
});
