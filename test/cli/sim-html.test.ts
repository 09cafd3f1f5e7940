// Reports inside the simulator's page: they come back as they were, and end nothing on their way.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { embedReports } from "../../src/cli/sim-html";
import type { Report } from "../../src/sim/report";

const OPENING = '<script type="application/json" id="plimsoll-reports">';

/** What a browser would read: all up to the next end of a script. */
function readBack(html: string): unknown {
  const from = html.indexOf(OPENING) + OPENING.length;
  return JSON.parse(html.slice(from, html.indexOf("</script", from)));
}

const none: readonly Report[] = [];

describe("embedReports", () => {
  test("brings any text back as it was, whatever it holds", () => {
    const texts = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("</script>", "<!--<script>", "</SCRIPT >", "\u2028", "$&", "$`", "]]>"),
    );
    fc.assert(
      fc.property(fc.dictionary(texts, texts), (scenario) => {
        const data = { reports: none, scenario: { ...scenario } };
        const html = embedReports("<html><body><p>page</p></body></html>", data);
        expect(readBack(html)).toEqual(JSON.parse(JSON.stringify(data)));
      }),
    );
  });

  test("leaves no < in what it embeds", () => {
    const html = embedReports("", { reports: none, scenario: "a<b", titles: ["<"] });
    expect(html.slice(OPENING.length, -"</script>".length)).not.toContain("<");
  });

  test("stands before the end of the body, and keeps the page as it is", () => {
    const html = embedReports("<body>page</body>\n</html>", { reports: none, scenario: 1 });
    expect(html).toBe(`<body>page${OPENING}{"reports":[],"scenario":1}</script></body>\n</html>`);
  });
});
