# The demo's last screen as the README and the book show it, drawn from what the demo has printed:
# awk -v style="$(cat draw.css)" -f draw.awk PRINTED > demo.svg
# What a letter of a 13 px monospaced font takes at most, a line, and the margin are 7.83, 18 and 16 pixels.

$0 == "What happened" { lines = widest = 0; begun = 1 }
begun {
    line[lines++] = $0
    if (length($0) > widest) widest = length($0)
}

function escaped(text) {
    gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text)
    return text
}

END {
    width = 32 + 7.83 * widest; if (width > int(width)) width = int(width) + 1
    height = 32 + 18 * lines
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" width "\" height=\"" height "\" viewBox=\"0 0 " width " " height "\" role=\"img\">"
    print "<title>The last screen of the demo</title>\n<style>\n" style "\n</style>"
    print "<rect x=\"0.5\" y=\"0.5\" width=\"" width - 1 "\" height=\"" height - 1 "\" rx=\"6\"/>"
    for (at = 0; at < lines; at++) {
        # What is not indented is a heading or the outcome.
        class = ""; word = line[at] ~ /^ / ? "" : line[at]
        if (line[at] ~ /^  ok/) { class = "good"; word = "  ok" }
        if (line[at] ~ /^  FAILED/) { class = "bad"; word = "  FAILED" }
        print "<text x=\"16\" y=\"" 16 + 18 * (at + 0.75) "\" xml:space=\"preserve\"><tspan class=\"strong " class "\">" escaped(word) "</tspan>" escaped(substr(line[at], length(word) + 1)) "</text>"
    }
    print "</svg>"
}
