// A plain socket.io-client: node_client.cjs URL TRANSPORT[,TRANSPORT]
// It sends what comes as lines of JSON, {"emit": [event, payload], "ack": true}, and writes down all that happens.
const { io } = require("socket.io-client");
const [url, transports] = process.argv.slice(2);
const tell = (...line) => process.stdout.write(JSON.stringify(line) + "\n");

const socket = io(url, { transports: transports.split(","), reconnection: false, forceNew: true });
socket.io.engine.on("open", () => tell("open", socket.io.engine.transport.name));
socket.io.engine.on("upgrade", (transport) => tell("upgrade", transport.name));
socket.on("connect", () => tell("connect"));
socket.on("connect_error", (error) => tell("connect_error", error.message));
socket.on("disconnect", (reason) => tell("disconnect", reason));
socket.onAny((event, payload) => tell(event, payload));

require("node:readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { emit, ack } = JSON.parse(line);
    if (ack) socket.emit(...emit, (answer) => tell("ack", answer));
    else socket.emit(...emit);
  })
  .on("close", () => socket.disconnect());
