/**
 * Texts that try to become markup, grouped by the place in a page that they break out of. If `PWN`
 * in one of them runs, it marks the page: see `pwned_mark`.
 */
export const pwned_mark = 'data-pwned';
const pwn = "document.documentElement.setAttribute('data-pwned','1')";

const elements = [
  `<script>${pwn}</script>`,
  `<ScRiPt >${pwn}</sCrIpT >`,
  `<scr<script>ipt>${pwn}</scr</script>ipt>`,
  `<img src=x onerror="${pwn}">`,
  `<img src=x onerror=${pwn}//`,
  `<svg onload="${pwn}">`,
  `<svg><script>${pwn}</script></svg>`,
  `<svg><animate onbegin="${pwn}" attributeName=x dur=1s>`,
  `<svg><set attributeName=href to=javascript:${pwn}>`,
  `<math><mtext><table><mglyph><style><img src=x onerror="${pwn}">`,
  `<math href="javascript:${pwn}">go</math>`,
  `<body onload="${pwn}">`,
  `<iframe srcdoc="&lt;script&gt;top.${pwn}&lt;/script&gt;"></iframe>`,
  `<iframe src="javascript:${pwn}">`,
  `<object data="javascript:${pwn}"></object>`,
  `<embed src="javascript:${pwn}">`,
  `<a href="javascript:${pwn}">go</a>`,
  `<form action="javascript:${pwn}"><button autofocus>`,
  `<input autofocus onfocus="${pwn}">`,
  `<details open ontoggle="${pwn}">`,
  `<video><source onerror="${pwn}"></video>`,
  `<marquee onstart="${pwn}">`,
  `<base href="https://evil.example/">`,
  '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
  '<link rel="stylesheet" href="https://evil.example/x.css">',
  '<style>*{display:none}@import url(https://evil.example/x.css);</style>',
  `<template><script>${pwn}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${pwn}>">`,
  '<plaintext>',
  '<textarea>',
  '<xmp>',
];

const breaks = [
  `"><script>${pwn}</script>`,
  `'><script>${pwn}</script>`,
  `" onmouseover="${pwn}" x="`,
  `' onfocus='${pwn}' autofocus='`,
  `\` onerror=${pwn} \``,
  `</title><script>${pwn}</script>`,
  `</style><script>${pwn}</script>`,
  `</script><script>${pwn}</script>`,
  `</svg><script>${pwn}</script>`,
  `</h1></main></body><script>${pwn}</script>`,
  `--><script>${pwn}</script><!--`,
  `--!><script>${pwn}</script>`,
  `]]><script>${pwn}</script><![CDATA[`,
  `<![CDATA[<script>${pwn}</script>]]>`,
  `<?xml-stylesheet href="javascript:${pwn}"?>`,
  '<!ENTITY xxe SYSTEM "file:///etc/passwd">&xxe;',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '&#60;script&#62;alert(1)&#60;/script&#62;',
  '&quot;&gt;&lt;img src=x onerror=alert(1)&gt;',
  `\${${pwn}}`,
  `{{constructor.constructor("${pwn}")()}}`,
  '<%= 7*7 %>',
  '#{7*7}',
  '%3Cscript%3Ealert(1)%3C/script%3E',
  '\\u003cscript\\u003ealert(1)\\u003c/script\\u003e',
];

const signs = [
  '\u202Etxet sdrawkcab\u202C and more\u202E',
  '\u2066isolated and never closed \u2067 twice',
  'zero\u200Bwidth\u200Cjoin\u200Ders\uFEFFhere\u2060',
  'line\u2028and\u2029paragraph',
  `com${'\u0301\u0317'.repeat(60)}bining`,
  '\u{1F468}\u200D\u{1F469}\u200D\u{1F467} \u{E0041}\u{E0042} tags',
  '\uFF1Cscript\uFF1Ealert(1)\uFF1C/script\uFF1E',
  '\u02BA\u02B9 \u2039script\u203A',
  '\u0000null\u0007bell\u001B[31mescape\u0085next',
  'tab\tfeed\fand\r\nreturn',
  'W'.repeat(10_000),
  '<'.repeat(10_000),
  '\u05D0'.repeat(300),
];

/** Texts that take quadratic time to normalize: many combining marks, in a row or out of order. */
export const marked_texts: readonly string[] = [
  `a${'\u0301'.repeat(62_000 / 2)}`,
  `a${'\u0301\u0316'.repeat(62_000 / 4)}`,
  `a${`${'\u0301'.repeat(30)}\u200d`.repeat(500)}`,
  `a${`${'\u0301'.repeat(30)}\u202e`.repeat(500)}`,
];

export const hostile_texts: readonly string[] = [...elements, ...breaks, ...signs];

export const hostile_addresses: readonly string[] = [
  `javascript:${pwn}`,
  `JaVaScRiPt:${pwn}`,
  ` javascript:${pwn}`,
  `java\tscript:${pwn}`,
  `data:text/html,<script>${pwn}</script>`,
  'vbscript:msgbox(1)',
  '//evil.example/x',
  `https://ok.example/" onmouseover="${pwn}`,
  `https://ok.example/'><script>${pwn}</script>`,
];
