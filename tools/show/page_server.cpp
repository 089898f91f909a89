// SPDX-License-Identifier: Apache-2.0
#include "tools/show/page_server.h"

#include <sys/random.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "tools/console.h"

namespace gpuprof {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kPatience(10);     // with one who says nothing, or reads nothing
constexpr std::chrono::milliseconds kPause(100);  // after a connection could not be accepted

std::string secret() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    throw Failure("open: the kernel gives no random number");
  }
  return fmt::format("{:016x}", number);
}

// What all connections share.
struct Service {
  const ServedFile& file;
  const std::string target, host;
  boost::asio::io_context& context;
  size_t sending = 0;  // connections that the file goes to
  bool sent = false;   // once, as a whole

  void end_if_done() {
    if (sent && sending == 0) context.stop();
  }
};

// One request and its answer. Lives as long as something is awaited of it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Service& service)
      : stream_(std::move(socket)), service_(service) {}

  void start() {
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](error_code error, size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  // The serializer refers to the response.
  template <typename Body>
  struct Reply {
    explicit Reply(http::response<Body> made) : response(std::move(made)), serializer(response) {}
    http::response<Body> response;
    http::response_serializer<Body> serializer;
  };

  void answer() {
    // The name by which it was reached: another would be that of a foreign page that points here.
    const auto host = request_[http::field::host];
    const auto origin = request_[http::field::origin];
    const std::string& own = service_.host;
    if ((host != own && host != "localhost" + own.substr(own.find(':'))) ||
        (!origin.empty() && origin != service_.file.origin)) {
      return refuse(http::status::forbidden);
    }
    if (request_.method() == http::verb::options) return allow();
    if (request_.method() != http::verb::get && request_.method() != http::verb::head) {
      return refuse(http::status::method_not_allowed);
    }
    if (request_.target() != service_.target) return refuse(http::status::not_found);
    send();
  }

  void set_head(http::fields& head) const {
    head.set(http::field::cache_control, "no-store");
    if (!service_.file.origin.empty()) {
      head.set(http::field::access_control_allow_origin, service_.file.origin);
      head.set(http::field::vary, "Origin");
    }
  }

  template <typename Body>
  void write(http::response<Body> response) {
    response.keep_alive(false);
    response.prepare_payload();
    write_some(std::make_shared<Reply<Body>>(std::move(response)));
  }

  // Each piece has its own deadline: a large file over a slow line takes as long as it takes.
  template <typename Body>
  void write_some(std::shared_ptr<Reply<Body>> reply) {
    stream_.expires_after(kPatience);
    http::async_write_some(stream_, reply->serializer,
                           [self = shared_from_this(), reply](error_code error, size_t) {
                             if (!error && !reply->serializer.is_done()) {
                               return self->write_some(reply);
                             }
                             self->finish(!error);
                           });
  }

  void finish(bool written) {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (!sends_file_) return;
    --service_.sending;
    service_.sent = service_.sent || written;
    service_.end_if_done();
  }

  void refuse(http::status status) {
    write(http::response<http::empty_body>(status, request_.version()));
  }

  // A browser asks first whether a page of the internet may read from this machine.
  void allow() {
    http::response<http::empty_body> response(http::status::no_content, request_.version());
    set_head(response);
    response.set(http::field::access_control_allow_methods, "GET");
    response.set("Access-Control-Allow-Private-Network", "true");
    write(std::move(response));
  }

  void send() {
    if (request_.method() == http::verb::head) {
      http::response<http::empty_body> head(http::status::ok, request_.version());
      set_head(head);
      head.set(http::field::content_type, service_.file.content_type);
      return write(std::move(head));
    }
    error_code error;
    http::response<http::file_body> response(http::status::ok, request_.version());
    response.body().open(service_.file.path.c_str(), boost::beast::file_mode::scan, error);
    if (error) throw Failure(fmt::format("{}: {}", service_.file.path, error.message()));
    set_head(response);
    response.set(http::field::content_type, service_.file.content_type);
    sends_file_ = true;
    ++service_.sending;
    write(std::move(response));
  }

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  http::request<http::empty_body> request_;
  Service& service_;
  bool sends_file_ = false;
};

// Whoever says nothing keeps nobody else waiting.
class Listener {
 public:
  Listener(tcp::acceptor& acceptor, Service& service)
      : acceptor_(acceptor), pause_(acceptor.get_executor()), service_(service) {}

  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!error) {
        std::make_shared<Connection>(std::move(socket), service_)->start();
        return accept();
      }
      pause_.expires_after(kPause);
      pause_.async_wait([this](error_code) { accept(); });
    });
  }

 private:
  tcp::acceptor& acceptor_;
  boost::asio::steady_timer pause_;
  Service& service_;
};

}  // namespace

void serve_once(const ServedFile& file, uint16_t port,
                const std::function<void(const std::string& address, uint16_t port)>& ready) {
  boost::asio::io_context context(1);
  tcp::acceptor acceptor(context);
  error_code error;
  const tcp::endpoint place(boost::asio::ip::address_v4::loopback(), port);
  acceptor.open(place.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(place, error);
  if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Failure(
        fmt::format("open: 127.0.0.1:{} cannot be listened on: {}; another gpuprof open "
                    "may be waiting there",
                    port, error.message()));
  }
  port = acceptor.local_endpoint().port();
  const std::string host = fmt::format("127.0.0.1:{}", port);
  const std::string target = fmt::format("/{}/{}", secret(), file.name);
  Service service{file, target, host, context};
  Listener listener(acceptor, service);
  listener.accept();
  ready(fmt::format("http://{}{}", host, target), port);
  context.run();
}

}  // namespace gpuprof
