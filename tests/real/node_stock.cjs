// The stock Node client of tyo-mq: node_stock.cjs FOLDER URL NAME hear PRODUCER EVENT, or: FOLDER URL NAME say
// Its token is in the environment. It says what comes as lines of JSON, [event, message], and writes down what it hears.
const [folder, url, name, task, producer, event] = process.argv.slice(2);
const { Factory } = require(folder);
const { hostname, port } = new URL(url);
const quiet = () => {};
const logger = { log: quiet, info: quiet, debug: quiet, warn: quiet, error: console.error };
const tell = (...line) => process.stdout.write(JSON.stringify(line) + "\n");
const lines = require("node:readline").createInterface({ input: process.stdin });
const queue = new Factory({ host: hostname, port, auth: { token: process.env.TYO_MQ_TOKEN }, logger });

async function main() {
  if (task === "hear") {
    const consumer = await queue.createConsumer(name);
    consumer.subscribe(producer, event, (message) => tell("heard", message));
    consumer.socket.emit("PING", {}, () => tell("ready"));
  } else {
    const speaker = await queue.createProducer(name);
    lines.on("line", (line) => {
      speaker.produce(...JSON.parse(line));
      speaker.socket.emit("PING", {}, () => tell("said"));
    });
    tell("ready");
  }
}

lines.on("close", () => process.exit(0));
main().catch((error) => {
  tell("failed", String(error));
  process.exit(1);
});
