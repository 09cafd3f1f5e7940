// A name server on loopback that says what a test wants: enough of RFC 1035 for A and AAAA questions.

import { createSocket } from "node:dgram";

/** What it answers: addresses, or one of the codes of RFC 1035, 4.1.1 (2: server failure, 3: no such name). */
export interface Zone {
  v4: string[];
  v6: string[];
  code: number;
  /** The code for questions of one kind, where it differs. */
  codes?: { v4?: number; v6?: number };
}

/** A running name server. */
export interface NameServer {
  readonly address: string;
  readonly zone: Zone;
  readonly questions: string[];
  close(): Promise<void>;
}

const TYPE_A = 1;
const TYPE_AAAA = 28;

/** Starts one. */
export async function startNameServer(): Promise<NameServer> {
  const zone: Zone = { v4: [], v6: [], code: 0 };
  const questions: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (query, { port, address }) => {
    let end = 12;
    const labels: string[] = [];
    for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
      labels.push(query.toString("latin1", end + 1, end + 1 + length));
      end += 1 + length;
    }
    questions.push(labels.join("."));
    const type = query.readUInt16BE(end + 1);
    const question = query.subarray(12, end + 5);
    const records = type === TYPE_A ? zone.v4.map(bytesOfV4) : zone.v6.map(bytesOfV6);
    const code = (type === TYPE_A ? zone.codes?.v4 : zone.codes?.v6) ?? zone.code;
    const answers = code === 0 && (type === TYPE_A || type === TYPE_AAAA) ? records : [];
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8580 | code, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    const parts = answers.map((bytes) => {
      const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length]);
      return Buffer.concat([head, bytes]);
    });
    socket.send(Buffer.concat([header, question, ...parts]), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", () => resolve()));
  const { port } = socket.address();
  return {
    ...{ address: `127.0.0.1:${port}`, zone, questions },
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function bytesOfV4(address: string): Buffer {
  return Buffer.from(address.split(".").map(Number));
}

/** Only addresses as short as `::1` are written here. */
function bytesOfV6(address: string): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16BE(Number.parseInt(address.replace("::", ""), 16), 14);
  return bytes;
}
