import type { TargetProblemCode } from '../../src/kit/outbound/target.js';

/** A valid URL of this many bytes. */
export const longUrl = (length: number): string => {
  const start = 'https://hooks.acme.com/';
  return start + 'a'.repeat(length - start.length);
};

const words = (list: string): readonly string[] => list.trim().split(/\s+/);

/** Hosts, some with a port, that no webhook may use. */
const refused_hosts = words(`
  localhost LOCALHOST localhost. app.localhost localhost.localdomain printer.local
  metadata.google.internal/computeMetadata/v1 wiki.intranet nas.lan router.home mail.corp
  nas.home.arpa 1.0.0.127.in-addr.arpa hooks.test hooks.invalid hooks.example abcdefghij.onion
  kubernetes.default.svc redis redis. com 127.0.0.1 127.0.0.1. 127.1 2130706433 0x7f000001
  0x7f.0.0.1 0177.0.0.1 017700000001 0 0.0.0.0 127.0.0.1:8443 ①②⑦.⓪.⓪.① 127。0。0。1 10.0.0.1
  172.16.0.1 192.168.1.1 169.254.169.254/latest/meta-data 0xa9fea9fe 168.63.129.16
  100.100.100.200 8.8.8.8 [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1]
  [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [fd00::1] [fe80::1] [2606:4700:4700::1111]
  app.localhost. a.b.c.localhost db.svc api.default.svc.cluster.local
  169.254.169.254.nip.internal instance-data.ec2.internal/latest/meta-data
  host.docker.internal:8443 LocalHost。LocalDomain ｌｏｃａｌｈｏｓｔ ０x7f.1 0x7f.0x0.0x0.0x1 3232235777
  0300.0250.1.1 [::ffff:a9fe:a9fe] [::ffff:0:127.0.0.1] [0000::1]:8443 [fec0::1] [ff02::1]
  [2001:db8::1] 255.255.255.255 224.0.0.1 0.0.0.0:10000 hooks.acme.com:25 hooks.acme.com:444
  hooks.acme.com:5432 hooks.acme.com:22 hooks.acme.com:80 hooks.acme.com:6379 hooks.acme.com:8080
  hooks.acme.com:8442 hooks.acme.com:8444 hooks.acme.com:9999 hooks.acme.com:0
`);

/** URLs that no webhook may use, grouped by the problem. */
export const bad_targets: Readonly<Record<TargetProblemCode, readonly string[]>> = {
  https_required: words(`
    http://hooks.acme.com/ http://127.0.0.1/ ftp://hooks.acme.com/ file:///etc/passwd
    javascript:alert(1) data:text/plain,hello gopher://hooks.acme.com:70/_GET
    ws://hooks.acme.com/ wss://hooks.acme.com/ hooks.acme.com:443/path localhost:8443
    blob:https://hooks.acme.com/1
  `),
  invalid_url: [
    '',
    ' ',
    'https://ho oks.acme.com/',
    `https://${'a'.repeat(64)}.acme.com/`,
    `https://${'abcdefg.'.repeat(32)}com/`,
    'https://ho$ks.acme.com/',
    "https://ho'oks.acme.com/",
    longUrl(2_049),
    `https://hooks.acme.com/${'ü'.repeat(400)}`,
    ...words(`
      hooks.acme.com //hooks.acme.com/ /relative https:// https:/// https://:443/
      https://hooks.acme.com:99999/ https://hooks.acme.com:-1/ https://[::1 https://[::1%eth0]/
      https://[fe80::1%25eth0]/ https://1.2.3.4.5/ https://256.1.1.1/ https://0x1ffffffff/
      https://xn--a/ https://user@hooks.acme.com/ https://user:word@hooks.acme.com/
      https://:word@hooks.acme.com/ https://hooks.acme.com%00.evil.com/
      https://hooks.acme.com:443@127.0.0.1/ https://127.0.0.1%2f@hooks.acme.com/
      https://hooks.acme.com/#part https://hooks.acme.com/# https://hooks.acme.com#@127.0.0.1/
      https://hooks..acme.com/ https://.acme.com/ https://hooks.acme.com../
      https://-hooks.acme.com/ https://hooks-.acme.com/ https://*.acme.com/
    `),
  ],
  target_refused: [
    ...refused_hosts.map((host) => `https://${host}/`),
    'https://%31%32%37.0.0.1/',
    'https:\\\\127.0.0.1\\',
    'https:127.0.0.1',
    'ht\ntps://127.0.0.1/',
  ],
};
